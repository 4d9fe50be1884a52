// SPDX-License-Identifier: MIT
// The parts from which write_wgsl() puts a shader together. Private to kernel/wgsl_*.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/program.h"
#include "kernel/wgsl_writer.h"

namespace tensorgrad::wgsl {

// "12u"; a negative number wraps, as u32 arithmetic does.
std::string u32_literal(std::int64_t value);

// A shader in the parts that write_wgsl() prints one after another, and join_wgsl() joins with
// those of others.
struct Shader {
  struct Shared {
    std::string type;
    std::int64_t count = 0, bytes = 0;
  };

  std::vector<std::string> types;                // of an element, for each binding
  std::map<std::string, Shared> shared;          // arrays in workgroup memory, by name
  std::map<std::string, std::string> functions;  // by name
  std::string main;                              // the statements of main()
  std::int64_t groups = 1;
  int threads = 1;
  bool uses_hyper = false;
  bool uses_units = false;
  bool enables_subgroups = false;

  [[nodiscard]] std::int64_t workgroup_bytes() const;
};

// A block of statements in which names are declared. Equal expressions get one name, declared in
// the outermost block that sees what they are made of; so loop-invariant index arithmetic leaves
// the loop.
class Scope {
 public:
  Scope() : names_(std::make_shared<int>(0)), depth_(1) {}
  explicit Scope(Scope* parent)
      : parent_(parent), names_(parent->names_), depth_(parent->depth_ + 1) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() = default;

  void line(const std::string& statement);
  // Appends a finished inner block between "opening {" and "}".
  void block(const std::string& opening, const Scope& inner);
  // Says that a name is declared here; names that nobody owns are visible everywhere.
  void own(const std::string& name) { owned_.insert(name); }
  // A name for an expression made of the names in `parts`.
  std::string let(const std::string& prefix, const std::string& expression,
                  const std::vector<std::string>& parts);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  Scope* parent_ = nullptr;
  std::shared_ptr<int> names_;  // counter, one for all nested scopes
  int depth_;
  std::string text_;
  std::set<std::string> owned_;
  std::map<std::string, std::string> named_;  // expression -> name
};

// What stands outside of functions: bindings, the hyper row, helpers, workgroup memory.
class Module {
 public:
  explicit Module(const Launch& launch);

  // An expression of the register type (bool for kBool).
  std::string load(int binding, DType dtype, const std::string& index) const;
  // From here on the binding is an array of vectors of f32 or f16. The next two read the one with
  // element `index` as f32, and write it (a statement).
  void hold_vectors(int binding, DType dtype, int width = 4);
  static std::string load_vector(int binding, DType dtype, const std::string& index, int width = 4);
  [[nodiscard]] static std::string store_vector(int binding, DType dtype, const std::string& index,
                                                const std::string& value);
  // From here on the binding, of f16, is an array of vec4<u32>: vectors of eight.
  void hold_eights(int binding);
  // A statement.
  std::string store(int binding, DType dtype, const std::string& index,
                    const std::string& value) const;
  // The u32 word of the step's hyper row.
  std::string hyper(int word);
  std::string constant(DType dtype, std::uint32_t bits);
  // Declares the library's helper functions ("tg_...") that the expression calls.
  void use_helpers(std::string_view expression);
  // Adds a function of our own, once.
  void function(const std::string& name, const std::string& text);
  // Declares workgroup memory of `count` elements, once.
  void shared(const std::string& name, const std::string& type, std::int64_t count,
              int element_bytes);
  // Threads give each other values; `enabled`: which shaders must ask for.
  void use_subgroups(bool enabled) { enables_subgroups_ |= enabled; }
  // By turns false and true.
  bool next_turn() { return std::exchange(turn_, !turn_); }
  // Everything declared so far; nothing of main().
  [[nodiscard]] Shader shader() const;

 private:
  void count_use(const ScalarProgram& program);

  std::vector<std::set<std::string>> types_;  // per binding: element types in memory
  std::map<std::string, std::string> functions_;
  std::map<std::string, Shader::Shared> shared_;
  bool uses_hyper_ = false, enables_subgroups_ = false, turn_ = false;
};

// Types in registers ("bool") and in memory ("u32" for booleans).
std::string_view register_type(DType dtype);
std::string_view memory_type(DType dtype);

// One coordinate of a domain: a u32 `name` that counts from 0 to size - 1.
struct Axis {
  std::string name;
  std::int64_t size = 1;
};
// A row-major domain, outermost axis first.
using Domain = std::vector<Axis>;

std::int64_t size_of(const Domain& domain);
// The row-major linear index.
std::string linear_index(Scope& scope, const Domain& domain);
// (linear index / divisor) % modulus
std::string coordinate(Scope& scope, const Domain& domain, std::int64_t divisor,
                       std::int64_t modulus);

// Where an element lies: the offset as a u32 expression, and the condition under which it is valid
// (empty: always). `parts` are the names used in both.
struct Place {
  std::string index, valid;
  std::vector<std::string> parts;
};
Place place_of(Scope& scope, const Domain& domain, const IndexMap& map);

// How far apart in memory neighbours along the axis lie: 0 where they are one, 1 where they touch,
// a large number where it is not known. For choosing who loads what.
std::int64_t inner_step(const Domain& domain, const IndexMap& map, std::size_t axis);
// How far apart neighbours along the axis lie, if always as far.
std::optional<std::int64_t> even_step(const Domain& domain, const IndexMap& map, std::size_t axis);
// How the elements that four (or `count`) neighbours along the axis read lie in memory, the first
// of them at a multiple of four: all at one place, side by side from a multiple of four on, or in
// another way.
enum class RunOfFour { kConstant, kTouching, kOther };
RunOfFour run_of_four(const Domain& domain, const IndexMap& map, std::size_t axis,
                      std::int64_t count = 4);
// True where most of the program's loads touch along `axis` and not along `other`.
bool runs_along(const ScalarProgram& program, const Domain& domain, std::size_t axis,
                std::size_t other);
// Are all its values numbers that f16 has?
bool is_half(const ScalarProgram& program);
// Does it read words that hold several neighbours along the axis each, and lie side by side?
bool packs_along(const ScalarProgram& program, const Domain& domain, std::size_t axis);

// Prints the instructions of one scalar program. `element` and `row` are the domains of the two
// levels (the same for all but row launches).
class ProgramWriter {
 public:
  // Names of its values end with `suffix`.
  ProgramWriter(Module& module, const ScalarProgram& program, Domain element, Domain row,
                std::string acc = {}, std::string suffix = {});

  // Instructions that the given ones need, themselves included, in order.
  [[nodiscard]] std::vector<int> needed(const std::vector<int>& roots) const;
  void write(Scope& scope, int instr);
  void write_all(Scope& scope, const std::vector<int>& instrs);
  void store(Scope& scope, const Store& store);
  // What only these use that are f16 need not be more exact than that.
  void relax(const std::vector<Store>& stores);
  // The name of a value that was written or set.
  [[nodiscard]] const std::string& value(int instr) const;
  void set_value(int instr, const std::string& name);
  [[nodiscard]] DType dtype(int instr) const;

 private:
  std::string load(Scope& scope, const Instr& instr);
  std::string load_at(Scope& scope, const Instr& instr, int number);
  std::string apply(const Instr& instr, bool relaxed);
  // Of operands that compilers would make a constant of; else empty.
  std::string apply_to_zero(const Instr& instr);
  [[nodiscard]] const Domain& domain(Level level) const;

  Module& module_;
  const ScalarProgram& program_;
  Domain element_, row_;
  std::string acc_, suffix_;
  std::vector<std::string> values_;
  std::vector<bool> relaxed_;  // by instruction
};

// How the threads of a workgroup share rows (or results): `rows` of them at a time, each by `lanes`
// threads whose partial results are combined in a fixed order.
struct Tile {
  int rows = 64, lanes = 1;
  bool lanes_first = true;  // neighbouring threads are lanes of one row, not rows

  [[nodiscard]] int threads() const { return rows * lanes; }
};

// Dispatch of a number of workgroups, folded into two dimensions.
struct Grid {
  std::uint32_t x = 1, y = 1;
};
Grid fold_groups(std::int64_t groups);

// Opens `main`: declares `group` (the linear workgroup number), and for tiles `row`, `lane`, and,
// where tiles may hang over, `live`. Returns the condition under which the row exists (empty:
// always). Rows are numbered from `first`.
std::string open_rows(Scope& scope, const Tile& tile, std::int64_t rows, const std::string& row,
                      std::int64_t first = 0);
// The shader whose main function is `body`, for so many workgroups of so many threads.
Shader make_shader(const Module& module, const Scope& body, int threads, std::int64_t groups);

// A reduction in progress: `name` (and `name`_at for argmax and argmin) accumulate per thread.
struct Partial {
  std::string name;
  DType dtype = DType::kF32;
  ReduceOp op = ReduceOp::kSum;

  [[nodiscard]] bool indexed() const { return op == ReduceOp::kArgMax || op == ReduceOp::kArgMin; }
  // Of floats, whether one was NaN is kept apart, in name_bits: their largest magnitude, as bits.
  [[nodiscard]] bool watches_nan() const {
    return dtype == DType::kF32 && (op == ReduceOp::kMax || op == ReduceOp::kMin);
  }
};
// `var name = identity;`
void declare_partial(Scope& scope, Module& module, const Partial& partial);
// name = name (+) value, where the value stands in column `col`. Whether a maximum or a minimum is
// NaN, combine_lanes() says.
void accumulate(Scope& scope, Module& module, const Partial& partial, const std::string& value,
                const std::string& col);
// Combines the lanes of each row, if there are several; afterwards `name` holds the row's result in
// every lane. Needs uniform control flow, and no loop around it.
void combine_lanes(Scope& scope, Module& module, const Tile& tile,
                   const std::vector<Partial>& partials, const WgslOptions& options);

// The pieces of a shader's text. Binding i is called `name`i.
// What must be enabled for them comes first.
std::string print_enables(const std::vector<std::string>& types, bool uses_units,
                          bool enables_subgroups);
std::string print_bindings(const std::vector<Binding>& bindings,
                           const std::vector<std::string>& types, const std::string& name);
std::string print_hyper();
std::string print_shared(const std::string& name, const Shader::Shared& array);
std::string print_function(const std::string& text);
std::string print_main(const std::string& body, int threads);
std::string print_header(const Launch& launch);

// Threads of a workgroup that works row by row, of `wanted` by itself: all have as many where
// launches are to be joined.
int group_threads(int wanted, const WgslOptions& options);

// A row program's rows; `live` as open_rows() gives it, `acc` what kAcc stands for; `kept`: a
// lane's elements are written out, up to kMostWrittenOut, and none is computed twice.
struct RowDomain {
  std::int64_t rows, cols;
  std::string live, acc;
  bool kept = false;
};
// The passes of the launch's body and its stores. `local`, `row` and, if a row has several lanes,
// `lane` are declared; needs uniform control flow.
void write_row_passes(Scope& scope, Module& module, const Launch& launch, const RowDomain& domain,
                      const Tile& tile, const WgslOptions& options);

Shader write_shader(const Launch& launch, const WgslOptions& options);
Shader write_map(const Launch& launch, const WgslOptions& options);
Shader write_row(const Launch& launch, const WgslOptions& options);
Shader write_contraction(const Launch& launch, const WgslOptions& options);
Shader write_scatter(const Launch& launch, const WgslOptions& options);
Shader write_scan(const Launch& launch, const WgslOptions& options);
Shader write_sort(const Launch& launch, const WgslOptions& options);
Shader write_custom(const Launch& launch, const WgslOptions& options);
Shader write_attention(const Launch& launch, const WgslOptions& options);
Shader write_selective_scan(const Launch& launch, const WgslOptions& options);

// Functions over a domain of three axes p, i, q. `fn NAME(p, i, q) -> TYPE`: the program's last
// instruction. `fn finish(p, i, q, acc)`: the launch's body and stores, of an accumulated value.
void write_source(Module& module, const std::string& name, const ScalarProgram& program,
                  const Domain& domain);
void write_finish(Module& module, const Launch& launch, const Domain& domain, DType dtype);

// Steps of a loop that are written out, so that compilers know all places; threads to fill a GPU.
inline constexpr int kMostWrittenOut = 16;
inline constexpr std::int64_t kFullGpu = 1 << 16;

std::int64_t ceil_div(std::int64_t a, std::int64_t b);
// The largest power of two that is at most `value`, at least 1; and the smallest that is not less.
int floor_pow2(std::int64_t value);
int ceil_pow2(std::int64_t value);

}  // namespace tensorgrad::wgsl
