// SPDX-License-Identifier: MIT
// Code points of text that may not be UTF-8: kinds, normal forms, symbols of bytes.
#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "io/text.h"

namespace tensorgrad::text {
namespace {

// Kinds of a general category, by its number in utf8proc.
constexpr auto kCategoryKinds = [] {
  std::array<std::uint8_t, UTF8PROC_CATEGORY_CO + 1> kinds{};
  kinds[UTF8PROC_CATEGORY_LU] = kinds[UTF8PROC_CATEGORY_LT] = kLetter | kUpper;
  kinds[UTF8PROC_CATEGORY_LL] = kLetter | kLower;
  kinds[UTF8PROC_CATEGORY_LM] = kinds[UTF8PROC_CATEGORY_LO] = kLetter | kUpper | kLower;
  for (const int c : {UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_MC, UTF8PROC_CATEGORY_ME}) {
    kinds[static_cast<std::size_t>(c)] = kUpper | kLower;
  }
  for (const int c : {UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NL, UTF8PROC_CATEGORY_NO}) {
    kinds[static_cast<std::size_t>(c)] = kNumber;
  }
  for (const int c : {UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZL, UTF8PROC_CATEGORY_ZP}) {
    kinds[static_cast<std::size_t>(c)] = kSpace;
  }
  for (const int c :
       {UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PD, UTF8PROC_CATEGORY_PS, UTF8PROC_CATEGORY_PE,
        UTF8PROC_CATEGORY_PI, UTF8PROC_CATEGORY_PF, UTF8PROC_CATEGORY_PO}) {
    kinds[static_cast<std::size_t>(c)] = kPunctuation;
  }
  return kinds;
}();

constexpr char32_t kNextLine = 0x85;  // the only control character beyond ASCII that is white space

// Decodes a valid UTF-8 sequence of `size` bytes.
char32_t decode_utf8(std::string_view text, std::size_t at, std::size_t size) {
  const auto byte = [&](std::size_t i) -> char32_t {
    return static_cast<unsigned char>(text[at + i]);
  };
  if (size == 1) return byte(0);
  char32_t code = byte(0) & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) code = code << 6 | (byte(i) & 0x3f);
  return code;
}

bool part_of_word(char32_t code) {
  if (code == kNoCharacter) return false;
  if (code == 0x200c || code == 0x200d) return true;  // joiners
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    // Circled and squared letters are alphabetic (Other_Alphabetic), which utf8proc does not know.
    case UTF8PROC_CATEGORY_SO:
      return (code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
             (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189);
    default: return false;
  }
}

// Returns the start of the character that ends at `end` > 0.
std::size_t last_character(std::string_view text, std::size_t end) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(4, end); ++back) {
    const std::size_t at = end - back;
    if ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
    return io::utf8_length(text.substr(at)) == back ? at : end - 1;
  }
  return end - 1;
}

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  options |=
      form == NormalForm::kNfc || form == NormalForm::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

// Appends the decomposition of a character.
void decompose(std::vector<utf8proc_int32_t>& codes, utf8proc_int32_t code,
               utf8proc_option_t options) {
  constexpr std::size_t kUsual = 32;
  int boundary = 0;  // not used with these options
  const std::size_t start = codes.size();
  for (std::size_t room = kUsual;;) {
    codes.resize(start + room);
    const utf8proc_ssize_t size = utf8proc_decompose_char(
        code, codes.data() + start, static_cast<utf8proc_ssize_t>(room), options, &boundary);
    CHECK(size >= 0, "a decomposition");
    codes.resize(start + std::min(room, static_cast<std::size_t>(size)));
    if (static_cast<std::size_t>(size) <= room) return;
    room = static_cast<std::size_t>(size);
  }
}

// Sorts the marks after each character by combining class. utf8proc_map() does so by swapping
// neighbors, which is quadratic in the number of marks.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  const auto rank = [](utf8proc_int32_t code) {
    return utf8proc_get_property(code)->combining_class;
  };
  const auto less = [&](utf8proc_int32_t a, utf8proc_int32_t b) { return rank(a) < rank(b); };
  for (auto at = codes.begin(); at != codes.end();) {
    at = std::find_if(at, codes.end(), [&](utf8proc_int32_t code) { return rank(code) != 0; });
    const auto end =
        std::find_if(at, codes.end(), [&](utf8proc_int32_t code) { return rank(code) == 0; });
    if (!std::is_sorted(at, end, less)) std::stable_sort(at, end, less);
    at = end;
  }
}

void append_normalized(std::string& out, std::string_view valid, NormalForm form) {
  const utf8proc_option_t options = options_of(form);
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(valid.size());
  const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(valid.data());
  for (std::size_t at = 0; at < valid.size();) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t size =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(valid.size() - at), &code);
    CHECK(size > 0, "UTF-8");
    decompose(codes, code, options);
    at += static_cast<std::size_t>(size);
  }
  order_marks(codes);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), options);
  CHECK(count >= 0, "a normal form");
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    utf8proc_uint8_t text[4];
    const utf8proc_ssize_t size = utf8proc_encode_char(codes[static_cast<std::size_t>(i)], text);
    out.append(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
  }
}

// Returns the number of leading bytes that form one U+FFFD: the longest valid beginning of a
// sequence.
std::size_t broken_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char head = byte(0);
  if (head < 0xc2 || head > 0xf4) return 1;
  const std::size_t wanted = head >= 0xf0 ? 4 : head >= 0xe0 ? 3 : 2;
  for (std::size_t n = 1; n < wanted; ++n) {
    if (n == text.size()) return n;
    unsigned char least = 0x80, most = 0xbf;
    if (n == 1 && head == 0xe0) least = 0xa0;
    if (n == 1 && head == 0xed) most = 0x9f;
    if (n == 1 && head == 0xf0) least = 0x90;
    if (n == 1 && head == 0xf4) most = 0x8f;
    if (byte(n) < least || byte(n) > most) return n;
  }
  return wanted;
}

struct ByteSymbols {
  ByteSymbols() {
    int next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
      const int code = itself ? byte : next++;
      std::string& symbol = of[static_cast<std::size_t>(byte)];
      if (code < 0x80) {
        symbol = {static_cast<char>(code)};
      } else {
        symbol = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
      }
      byte_of[static_cast<std::size_t>(code)] = static_cast<std::int16_t>(byte);
    }
  }
  std::array<std::string, 256> of;
  std::array<std::int16_t, 0x144> byte_of = [] {
    std::array<std::int16_t, 0x144> none{};
    none.fill(-1);
    return none;
  }();
};

const ByteSymbols& byte_symbols() {
  static const ByteSymbols symbols;
  return symbols;
}

}  // namespace

namespace detail {

const std::array<std::uint8_t, 128> kAsciiKinds = [] {
  std::array<std::uint8_t, 128> kinds{};
  for (int c = 0; c < 128; ++c) {
    std::uint8_t& mine = kinds[static_cast<std::size_t>(c)];
    if (c >= 'a' && c <= 'z') {
      mine = kLetter | kLower;
    } else if (c >= 'A' && c <= 'Z') {
      mine = kLetter | kUpper;
    } else if (c >= '0' && c <= '9') {
      mine = kNumber;
    } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
      mine = kSpace;
    } else if (c > ' ' && c < 0x7f) {
      mine = kPunctuation;
    }
  }
  return kinds;
}();

Character long_character_at(std::string_view text, std::size_t at) {
  const std::size_t size = io::utf8_length(text.substr(at, 4));
  if (size == 0) return {kNoCharacter, 1, 0};
  const char32_t code = decode_utf8(text, at, size);
  const auto category =
      static_cast<std::size_t>(utf8proc_category(static_cast<utf8proc_int32_t>(code)));
  std::uint8_t kinds = kCategoryKinds[category];
  if (code == kNextLine) kinds = kSpace;
  return {code, static_cast<std::uint8_t>(size), kinds};
}

}  // namespace detail

bool word_begins_at(std::string_view text, std::size_t at) {
  return at < text.size() && part_of_word(character_at(text, at).code);
}

bool word_ends_at(std::string_view text, std::size_t end) {
  return end > 0 && part_of_word(character_at(text.substr(0, end), last_character(text, end)).code);
}

std::size_t skip_spaces(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Character c = character_at(text, at);
    if ((c.kinds & kSpace) == 0) break;
    at += c.size;
  }
  return at;
}

std::size_t spaces_before(std::string_view text, std::size_t end) {
  while (end > 0) {
    const std::size_t at = last_character(text, end);
    if ((character_at(text.substr(0, end), at).kinds & kSpace) == 0) break;
    end = at;
  }
  return end;
}

void append_utf8(std::string& out, char32_t code) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t size =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size));
}

void append_lower(std::string& out, char32_t code) {
  constexpr char32_t kCapitalIWithDot = 0x130;  // the only one whose lower case is two code points
  if (code == kCapitalIWithDot) {
    out += "i\u0307";
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  }
}

bool is_nonspacing_mark(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_MN;
}

bool is_mark(char32_t code) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool is_control(char32_t code) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO;
}

std::size_t grapheme_end(std::string_view text, std::size_t at) {
  utf8proc_int32_t state = 0;
  Character last = character_at(text, at);
  at += last.size;
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (last.code == kNoCharacter || next.code == kNoCharacter ||
        utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.code),
                                         static_cast<utf8proc_int32_t>(next.code), &state)) {
      break;
    }
    at += next.size;
    last = next;
  }
  return at;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// An ASCII character never composes with the characters before it. Text between two ASCII
// characters can therefore be normalized independently, together with the ASCII character before
// it, which may compose with what follows.
std::string normalized(std::string_view text, NormalForm form) {
  std::string out;
  out.reserve(text.size());
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t begin = at;
    while (begin < text.size() && static_cast<unsigned char>(text[begin]) < 0x80) ++begin;
    if (begin == text.size()) break;
    if (begin > at) --begin;
    out.append(text, at, begin - at);
    std::size_t end = begin;
    if (static_cast<unsigned char>(text[end]) < 0x80) ++end;
    while (end < text.size() && static_cast<unsigned char>(text[end]) >= 0x80) {
      const std::size_t size = io::utf8_length(text.substr(end, 4));
      if (size == 0) break;
      end += size;
    }
    append_normalized(out, text.substr(begin, end - begin), form);
    at = end;
    while (at < text.size() && io::utf8_length(text.substr(at, 4)) == 0) out += text[at++];
  }
  return out.append(text, at);
}

std::string as_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t size = io::utf8_length(bytes);
    if (size > 0) {
      out += bytes.substr(0, size);
      bytes.remove_prefix(size);
    } else {
      out += "\xef\xbf\xbd";
      bytes.remove_prefix(broken_length(bytes));
    }
  }
  return out;
}

std::size_t unfinished_bytes(std::string_view bytes) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const auto head = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((head & 0xc0) == 0x80) continue;
    const std::size_t wanted = head >= 0xf0 ? 4 : head >= 0xe0 ? 3 : head >= 0xc0 ? 2 : 1;
    const std::string_view tail = bytes.substr(bytes.size() - back);
    return head >= 0xc2 && head <= 0xf4 && back < wanted && broken_length(tail) == back ? back : 0;
  }
  return 0;
}

std::string_view byte_symbol(unsigned char byte) { return byte_symbols().of[byte]; }

bool bytes_of_symbols(std::string_view token, std::string& bytes) {
  const ByteSymbols& symbols = byte_symbols();
  bytes.clear();
  for (std::size_t at = 0; at < token.size();) {
    const std::size_t size = io::utf8_length(token.substr(at, 4));
    if (size == 0) return false;
    const char32_t code = decode_utf8(token, at, size);
    if (code >= symbols.byte_of.size() || symbols.byte_of[code] < 0) return false;
    bytes += static_cast<char>(symbols.byte_of[code]);
    at += size;
  }
  return true;
}

std::string symbols_of_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char byte : bytes) out += byte_symbol(static_cast<unsigned char>(byte));
  return out;
}

}  // namespace tensorgrad::text
