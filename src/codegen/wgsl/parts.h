// SPDX-License-Identifier: MIT
// Building blocks of write_wgsl(). Private to codegen/wgsl.
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

#include "base/divide.h"
#include "codegen/wgsl/writer.h"
#include "kernel/program.h"

namespace tensorgrad::wgsl {

// Returns "12u". Negative values wrap, as in u32 arithmetic.
std::string u32_literal(std::int64_t value);

// The parts of a shader. write_wgsl() prints them in order; write_dispatches() merges them with
// those of other shaders.
struct Shader {
  struct Shared {
    std::string type;
    std::int64_t count = 0, bytes = 0;
  };

  std::vector<std::string> types;                // element type of each binding
  std::map<std::string, Shared> shared;          // arrays in workgroup memory by name
  std::map<std::string, std::string> functions;  // by name
  std::string main;                              // statements of main()
  std::int64_t groups = 1;
  int threads = 1;
  bool uses_scalars = false;
  bool uses_subgroup_matrix = false;
  bool enables_subgroups = false;

  [[nodiscard]] std::int64_t workgroup_bytes() const;
};

// A block of statements that may declare names. Equal expressions share one name, which is declared
// in the outermost block that sees all its parts. Loop-invariant index arithmetic is thereby
// hoisted out of loops.
class Scope {
 public:
  Scope() : names_(std::make_shared<int>(0)), depth_(1) {}
  explicit Scope(Scope* parent)
      : parent_(parent), names_(parent->names_), depth_(parent->depth_ + 1) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() = default;

  void line(const std::string& statement);
  // Appends a complete inner block between "opening {" and "}".
  void block(const std::string& opening, const Scope& inner);
  // Marks a name as declared in this block. Names without an owner are visible everywhere.
  void own(const std::string& name) { owned_.insert(name); }
  // Returns a name for an expression that depends on the names in `parts`.
  std::string let(const std::string& prefix, const std::string& expression,
                  const std::vector<std::string>& parts);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  Scope* parent_ = nullptr;
  std::shared_ptr<int> names_;  // counter, shared by all nested scopes
  int depth_;
  std::string text_;
  std::set<std::string> owned_;
  std::map<std::string, std::string> named_;  // expression -> name
};

// Declarations outside of functions: bindings, runtime scalars, helpers, workgroup memory.
class Module {
 public:
  explicit Module(const Launch& launch);

  // Returns an expression of the register type (bool for kBool).
  std::string load(int binding, DType dtype, const std::string& index) const;
  // Makes the binding an array of vectors of f32 or f16. load_vector() and store_vector() return
  // the expression that reads the vector containing element `index`, as f32, and the statement that
  // writes it.
  void hold_vectors(int binding, DType dtype, int width = 4);
  static std::string load_vector(int binding, DType dtype, const std::string& index, int width = 4);
  [[nodiscard]] static std::string store_vector(int binding, DType dtype, const std::string& index,
                                                const std::string& value);
  // Makes the binding, of f16, an array of vec4<u32>, i.e. vectors of eight.
  void hold_vec8(int binding);
  // Returns the statement that stores a value.
  std::string store(int binding, DType dtype, const std::string& index,
                    const std::string& value) const;
  // Returns the expression of a runtime scalar, as u32.
  std::string runtime_scalars(int word);
  std::string constant(DType dtype, std::uint32_t bits);
  // Adds the library functions ("tg_...") that the expression calls.
  void use_helpers(std::string_view expression);
  // Adds a generated function, if not yet present.
  void function(const std::string& name, const std::string& text);
  // Declares an array of at least `count` elements in workgroup memory.
  void shared(const std::string& name, const std::string& type, std::int64_t count,
              int element_bytes);
  // Declares that threads exchange values; `enabled`: shaders must enable subgroups.
  void use_subgroups(bool enabled) { enables_subgroups_ |= enabled; }
  // Alternates between false and true.
  bool next_turn() { return std::exchange(turn_, !turn_); }
  // Returns all declarations so far, without main().
  [[nodiscard]] Shader shader() const;

 private:
  void count_use(const ScalarProgram& program);

  std::vector<std::set<std::string>> types_;  // per binding: element types in memory
  std::map<std::string, std::string> functions_;
  std::map<std::string, Shader::Shared> shared_;
  bool uses_scalars_ = false, enables_subgroups_ = false, turn_ = false;
};

// Element types in registers ("bool") and in memory ("u32" for booleans).
std::string_view register_type(DType dtype);
std::string_view memory_type(DType dtype);

// A coordinate of a domain: a u32 `name` in [0, size).
struct Axis {
  std::string name;
  std::int64_t size = 1;
};
// A row-major domain, outermost axis first.
using Domain = std::vector<Axis>;

std::int64_t size_of(const Domain& domain);
// Returns the row-major linear index.
std::string linear_index(Scope& scope, const Domain& domain);
// Returns (linear index / divisor) % modulus.
std::string coordinate(Scope& scope, const Domain& domain, std::int64_t divisor,
                       std::int64_t modulus);

// The location of an element: the offset as a u32 expression, and the condition under which it is
// valid (empty: always). `parts` are the names used in both.
struct ElementRef {
  std::string index, valid;
  std::vector<std::string> parts;
};
ElementRef place_of(Scope& scope, const Domain& domain, const IndexMap& map);

// Returns the distance in memory of neighbors along the axis: 0 if they coincide, 1 if they are
// contiguous, a large number if unknown. Used to choose which thread loads what.
std::int64_t inner_step(const Domain& domain, const IndexMap& map, std::size_t axis);
// Returns the stride along the axis if it is constant.
std::optional<std::int64_t> even_step(const Domain& domain, const IndexMap& map, std::size_t axis);
// Layout in memory of four (or `count`) neighbors along the axis, the first at a multiple of four:
// - kConstant: all at the same place
// - kTouching: contiguous and aligned to four (or `count`) elements
// - kOther: anything else
enum class VecAccess { kConstant, kTouching, kOther };
VecAccess vec_access(const Domain& domain, const IndexMap& map, std::size_t axis,
                     std::int64_t count = 4);
// Returns true if more of the program's loads are contiguous along `axis` than along `other`.
bool runs_along(const ScalarProgram& program, const Domain& domain, std::size_t axis,
                std::size_t other);
// Returns true if all values of the program are representable in f16.
bool is_half(const ScalarProgram& program);
// Returns true if the program reads words that each pack several neighbors along the axis, and
// these words are contiguous.
bool packs_along(const ScalarProgram& program, const Domain& domain, std::size_t axis);

// Writes the instructions of a scalar program. `element` and `row` are the domains of the two
// levels; they differ only in row launches.
class ProgramWriter {
 public:
  // Appends `suffix` to the names of the values.
  ProgramWriter(Module& module, const ScalarProgram& program, Domain element, Domain row,
                std::string acc = {}, std::string suffix = {});

  // Returns the instructions that `roots` depend on, including themselves, in order.
  [[nodiscard]] std::vector<int> needed(const std::vector<int>& roots) const;
  void write(Scope& scope, int instr);
  void write_all(Scope& scope, const std::vector<int>& instrs);
  void store(Scope& scope, const Store& store);
  // Allows f16 accuracy for values that are used only by stores of f16.
  void relax(const std::vector<Store>& stores);
  // Returns the name of a value that was written or set.
  [[nodiscard]] const std::string& value(int instr) const;
  void set_value(int instr, const std::string& name);
  [[nodiscard]] DType dtype(int instr) const;

 private:
  std::string load(Scope& scope, const Instr& instr);
  std::string load_at(Scope& scope, const Instr& instr, int number);
  std::string apply(const Instr& instr, bool relaxed);
  // Handles operands that compilers would fold to a constant; otherwise returns an empty string.
  std::string apply_to_zero(const Instr& instr);
  [[nodiscard]] const Domain& domain(Level level) const;

  Module& module_;
  const ScalarProgram& program_;
  Domain element_, row_;
  std::string acc_, suffix_;
  std::vector<std::string> values_;
  std::vector<bool> relaxed_;  // per instruction
};

// Assignment of rows (or results) to threads: a workgroup processes `rows` of them at a time, each
// with `lanes` threads. Partial results are combined in a fixed order.
struct Tile {
  int rows = 64, lanes = 1;
  bool lanes_first = true;  // neighboring threads are lanes of the same row

  [[nodiscard]] int threads() const { return rows * lanes; }
};

// A number of workgroups folded into two dimensions.
struct Grid {
  std::uint32_t x = 1, y = 1;
};
Grid fold_groups(std::int64_t groups);

// Opens `main`. Declares `group` (the linear workgroup index) and the row. For tiles with lanes
// also declares `lane` and, if the last tile is partial, `live`. Returns the condition under which
// the row exists (empty: always). Row numbers begin at `first`.
std::string open_rows(Scope& scope, const Tile& tile, std::int64_t rows, const std::string& row,
                      std::int64_t first = 0);
// Returns a shader with the main function `body`.
Shader make_shader(const Module& module, const Scope& body, int threads, std::int64_t groups);

// A reduction in progress. Each thread accumulates in `name`, for argmax and argmin also in
// `name`_at.
struct Partial {
  std::string name;
  DType dtype = DType::kF32;
  ReduceOp op = ReduceOp::kSum;

  [[nodiscard]] bool indexed() const { return op == ReduceOp::kArgMax || op == ReduceOp::kArgMin; }
  // True for max and min of floats, which track NaN separately: `name`_bits is the largest
  // magnitude as bits.
  [[nodiscard]] bool watches_nan() const {
    return dtype == DType::kF32 && (op == ReduceOp::kMax || op == ReduceOp::kMin);
  }
};
// Writes `var name = identity;`.
void declare_partial(Scope& scope, Module& module, const Partial& partial);
// Writes name = name (+) value, for a value in column `col`. NaN in a maximum or minimum takes
// effect in combine_lanes().
void accumulate(Scope& scope, Module& module, const Partial& partial, const std::string& value,
                const std::string& col);
// Combines the lanes of each row. Afterwards, `name` holds the row's result in every lane. Requires
// uniform control flow, and must not be in a loop.
void combine_lanes(Scope& scope, Module& module, const Tile& tile,
                   const std::vector<Partial>& partials, const WgslOptions& options);

// Print parts of the shader text. Binding i is named `name`i. print_enables() prints the directives
// that must come first.
std::string print_enables(const std::vector<std::string>& types, bool uses_subgroup_matrix,
                          bool enables_subgroups);
std::string print_bindings(const std::vector<Binding>& bindings,
                           const std::vector<std::string>& types, const std::string& name);
std::string declare_scalars();
std::string print_shared(const std::string& name, const Shader::Shared& array);
std::string print_function(const std::string& text);
std::string print_main(const std::string& body, int threads);
std::string print_header(const Launch& launch);

// Returns the workgroup size of a launch that prefers `wanted` threads. If launches are to be
// merged, all have the same size.
int group_threads(int wanted, const WgslOptions& options);

// The rows of a row program. `live` is the result of open_rows(), `acc` the expression for kAcc. If
// `kept`, up to kMaxWrittenOut columns per lane are unrolled, and no element is computed twice. If
// `array` is set, elements are stored there, at `array_row` * cols + col, instead of in bindings.
struct RowDomain {
  std::int64_t rows, cols;
  std::string live = {}, acc = {};
  bool kept = false;
  std::string array = {}, array_row = {};
};
// Maximum number of instructions of rows that are kept.
inline constexpr std::size_t kMaxKeptInstrs = 64;
// Writes the passes of the launch's body and its stores. Requires uniform control flow and that
// `local`, `row` and, if a row has several lanes, `lane` are declared.
void write_row_passes(Scope& scope, Module& module, const Launch& launch, const RowDomain& domain,
                      const Tile& tile, const WgslOptions& options);

Shader write_shader(const Launch& launch, const WgslOptions& options);
// Write a launch, of which the second argument is the kind.
Shader write_kind(const Launch& launch, const MapLaunch& map, const WgslOptions& options);
Shader write_kind(const Launch& launch, const RowLaunch& row, const WgslOptions& options);
Shader write_kind(const Launch& launch, const ContractionLaunch& p, const WgslOptions& options);
Shader write_kind(const Launch& launch, const ScatterLaunch& scatter, const WgslOptions& options);
Shader write_kind(const Launch& launch, const ScanLaunch& scan, const WgslOptions& options);
Shader write_kind(const Launch& launch, const SortLaunch& sort, const WgslOptions& options);

// Write functions over a domain of axes p, i, q. `fn NAME(p, i, q) -> TYPE` returns the value of
// the program's last instruction. `fn finish(p, i, q, acc)` runs the launch's body and stores for
// an accumulated value.
void write_source(Module& module, const std::string& name, const ScalarProgram& program,
                  const Domain& domain);
void write_finish(Module& module, const Launch& launch, const Domain& domain, DType dtype);

// Maximum number of unrolled iterations. Compilers know all addresses in unrolled code.
inline constexpr int kMaxWrittenOut = 16;

// Largest power of two <= value, at least 1; and smallest power of two >= value.
int floor_pow2(std::int64_t value);
int ceil_pow2(std::int64_t value);

}  // namespace tensorgrad::wgsl
