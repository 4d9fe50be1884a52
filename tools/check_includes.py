# SPDX-License-Identifier: MIT
"""The check `includes` of check_repo.py: files include the standard headers whose names they use.

A name std::x needs one of its headers in the file itself or in our headers that it includes.
Includes between standard headers differ between standard libraries, so they do not count. The
compiler checks the includes of our own headers (tests/package).
"""

import re

FOLDERS = ["include", "src", "cli", "examples", "bench"]
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
USE = re.compile(r"\bstd::(\w+)")

NAMES = {
    "algorithm": """adjacent_find all_of any_of binary_search clamp copy copy_if copy_n count
        count_if equal equal_range fill fill_n find find_if find_if_not for_each generate includes
        is_permutation is_sorted lexicographical_compare lower_bound max max_element min
        min_element minmax minmax_element mismatch none_of nth_element partial_sort partition
        pop_heap push_heap remove remove_if replace replace_if reverse rotate search
        set_difference set_intersection set_union shuffle sort stable_partition stable_sort
        swap_ranges transform unique upper_bound""",
    "any": "any any_cast",
    "array": "array to_array",
    "atomic": """atomic atomic_bool atomic_flag memory_order_acq_rel memory_order_acquire
        memory_order_relaxed memory_order_release memory_order_seq_cst""",
    "bit": """bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero endian has_single_bit
        popcount rotl""",
    "cctype": "isalnum isalpha isdigit isprint isspace isupper tolower toupper",
    "charconv": "chars_format from_chars to_chars",
    "chrono": "chrono",
    "clocale": "localeconv setlocale",
    "cmath": """acosh asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs
        floor fmod frexp hypot ilogb isfinite isinf isnan ldexp llround log log10 log1p log2 lrint
        lround nearbyint nextafter pow remainder rint round signbit sin sinh sqrt tan tanh
        trunc""",
    "compare": "partial_ordering strong_ordering weak_ordering",
    "complex": "complex",
    "concepts": "convertible_to derived_from floating_point integral invocable predicate same_as",
    "condition_variable": "condition_variable condition_variable_any cv_status",
    "coroutine": "coroutine_handle suspend_always suspend_never",
    "csignal": "signal raise sig_atomic_t",
    "cstdarg": "va_list",
    "cstdint": """int8_t int16_t int32_t int64_t intptr_t uint8_t uint16_t uint32_t uint64_t
        uintptr_t""",
    "cstdio": """FILE fclose ferror fflush fgets fopen fprintf fputs fread fwrite printf puts snprintf
        vsnprintf""",
    "cstdlib": """aligned_alloc atexit atof atoi calloc exit free getenv malloc quick_exit realloc
        strtod strtof strtol strtoll strtoul strtoull system _Exit abort""",
    "cstring": "memchr memcmp memcpy memmove memset strchr strcmp strerror strlen strncmp strstr",
    "deque": "deque",
    "exception": """current_exception exception exception_ptr make_exception_ptr rethrow_exception
        terminate uncaught_exceptions""",
    "filesystem": "filesystem",
    "fstream": "fstream ifstream ofstream",
    "functional": """bind equal_to function greater hash invoke less logical_not minus multiplies
        not_fn plus ref reference_wrapper cref""",
    "future": "async future launch packaged_task promise",
    "iomanip": "fixed hex left right setfill setprecision setw",
    "iostream": "cerr cin cout",
    "iterator": """advance back_inserter distance forward_iterator_tag input_iterator_tag inserter
        istreambuf_iterator make_move_iterator next prev random_access_iterator_tag
        reverse_iterator""",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": """addressof allocator enable_shared_from_this make_shared make_unique shared_ptr
        static_pointer_cast dynamic_pointer_cast unique_ptr weak_ptr default_delete""",
    "mutex": """call_once lock_guard mutex once_flag recursive_mutex scoped_lock unique_lock defer_lock
        adopt_lock try_to_lock""",
    "new": "align_val_t bad_alloc launder nothrow",
    "numbers": "numbers",
    "numeric": "accumulate exclusive_scan gcd inner_product iota lcm midpoint partial_sum reduce",
    "optional": "nullopt nullopt_t optional",
    "queue": "priority_queue queue",
    "random": """bernoulli_distribution discrete_distribution mt19937 mt19937_64 normal_distribution
        random_device seed_seq uniform_int_distribution uniform_real_distribution""",
    "regex": "regex regex_match regex_replace regex_search smatch cmatch sregex_iterator",
    "set": "multiset set",
    "shared_mutex": "shared_lock shared_mutex",
    "source_location": "source_location",
    "span": "as_bytes as_writable_bytes dynamic_extent span",
    "sstream": "istringstream ostringstream stringstream",
    "stdexcept": """domain_error invalid_argument length_error logic_error out_of_range overflow_error
        range_error runtime_error""",
    "string": "getline stod stof stoi stol stoll stoul stoull string to_string u32string u8string wstring",
    "string_view": "string_view",
    "system_error": "generic_category system_category system_error error_condition",
    "thread": "jthread this_thread thread stop_token",
    "tuple": "apply ignore make_tuple tie tuple tuple_cat forward_as_tuple",
    "type_traits": """add_const_t common_type_t conditional_t decay_t enable_if_t false_type
        integral_constant invoke_result_t is_arithmetic_v is_base_of_v is_constructible_v
        is_const_v is_convertible_v is_enum_v is_floating_point_v is_integral_v is_invocable_r_v
        is_array_v is_invocable_v is_pointer_v is_reference_v is_same_v is_signed_v
        is_trivially_copyable_v is_unsigned_v is_void_v make_signed_t make_unsigned_t remove_const_t remove_cvref_t
        remove_pointer_t remove_reference_t true_type type_identity_t underlying_type_t void_t
        is_default_constructible_v is_aggregate_v is_class_v bool_constant is_copy_constructible_v
        is_move_constructible_v is_constant_evaluated is_empty_v is_lvalue_reference_v""",
    "typeindex": "type_index",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_set",
    "utility": """as_const cmp_equal cmp_greater cmp_less exchange in_place in_range
        in_place_index index_sequence index_sequence_for integer_sequence make_index_sequence
        make_integer_sequence make_pair piecewise_construct unreachable""",
    "variant": """get_if holds_alternative monostate variant variant_alternative_t variant_size_v
        visit""",
    "vector": "vector",
}
CONTAINERS = "array deque list map set span string string_view unordered_map unordered_set vector"
# Names declared by several headers.
SEVERAL = {
    "size_t": "cstddef cstdint cstdio cstdlib cstring " + CONTAINERS,
    "ptrdiff_t": "cstddef " + CONTAINERS,
    "byte": "cstddef",
    "max_align_t": "cstddef",
    "nullptr_t": "cstddef",
    "to_integer": "cstddef",
    "abs": "cmath cstdlib",
    "errc": "system_error charconv",
    "ranges": "ranges algorithm",
    "locale": "locale",
    "error_code": "system_error filesystem",
    "get": "tuple variant array utility",
    "micro": "ratio chrono",
    "milli": "ratio chrono",
    "nano": "ratio chrono",
    "ratio": "ratio chrono",
    "ios": "ios fstream sstream iostream",
    "ostream": "ostream iosfwd iostream sstream fstream",
    "istream": "istream iosfwd iostream sstream fstream",
    "streamoff": "ios fstream sstream iostream",
    "streamsize": "ios fstream sstream iostream",
    "forward": "utility functional memory tuple",
    "move": "utility algorithm functional memory",
    "pair": "utility map unordered_map",
    "swap": "utility " + CONTAINERS,
    "initializer_list": "initializer_list utility " + CONTAINERS,
}
SEVERAL.update(dict.fromkeys(["begin", "end", "size", "ssize", "data", "empty", "rbegin", "rend",
                              "cbegin", "cend"], "iterator " + CONTAINERS))
SEVERAL.update(dict.fromkeys(["erase", "erase_if"], CONTAINERS))
HEADERS = {name: [header] for header, names in NAMES.items() for name in names.split()}
HEADERS.update({name: headers.split() for name, headers in SEVERAL.items()})


class Includes:
    """The standard headers that a file gets from itself and from our headers that it includes."""

    def __init__(self, root):
        self.root, self.known = root, {}

    def resolve(self, path, name):
        for folder in [path.parent, *(self.root / folder for folder in FOLDERS), self.root]:
            if (folder / name).is_file():
                return (folder / name).resolve()
        return None

    def of(self, path):
        if path not in self.known:
            self.known[path] = found = set()
            for ours, angled in INCLUDE.findall(path.read_text()):
                header = self.resolve(path, ours or angled)
                found |= self.of(header) if header else {angled or ours}
        return self.known[path]


def check(root):
    includes = Includes(root)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp") or path.name.endswith("-inl.h"):
                continue
            code = NOT_CODE.sub(lambda match: "\n" * match[0].count("\n"), path.read_text())
            had, told = includes.of(path.resolve()), set()
            for match in USE.finditer(code):
                name = match[1]
                if name in told:
                    continue
                told.add(name)
                line = code.count("\n", 0, match.start()) + 1
                if name not in HEADERS:
                    yield path, line, f"std::{name} is not in the table of tools/check_includes.py"
                elif not had.intersection(HEADERS[name]):
                    wanted = " or ".join(f"<{header}>" for header in HEADERS[name][:3])
                    yield path, line, f"std::{name} without {wanted}"
