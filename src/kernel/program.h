// SPDX-License-Identifier: MIT
// The input of a backend: launches over buffers. A Launch is one kernel on a GPU or one parallel
// loop on the CPU. This file does not depend on ops, graphs or devices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/variant.h"
#include "ir/view.h"
#include "kernel/opaque_kernel.h"
#include "kernel/pointwise.h"
#include "tensorgrad/error.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// ---- scalar programs -------------------------------------------------------------------------

// An instruction of a scalar program. Programs are in SSA form: instruction i defines value i, and
// operands have smaller indices.
enum class InstrKind : std::uint8_t {
  kConst,          // the 32-bit pattern `bits`, of type dtype
  kRuntimeScalar,  // word `index` of the runtime scalars (RuntimeScalars), bitcast to dtype
  kIndex,          // linear index in the program's domain, u32; at row level the row index
  kCoord,          // coordinate of the element on an axis: (linear / divisor) % modulus, u32
  kLoad,           // accesses[index] at this element; zero if its map is not valid there
  kLoadAt,  // gather: accesses[index] at map(element) + at_stride * v, v = operand 0 (i32 or u32);
            // zero if v is not in [0, at_size)
  kInBounds,  // bool: true if the map of accesses[index] is valid at this element
  kOp,        // pointwise op on operands
  kReduce,    // row launches: reduces operand 0 (element level) over the columns; row level
  kAcc,       // epilogues: the value that the launch computed from its operands
};

enum class ReduceOp : std::uint8_t { kSum, kMax, kMin, kArgMax, kArgMin };

// The recurrence of a scan along a line of elements a[t] and b[t].
enum class ScanOp : std::uint8_t {
  kSum,      // h = h + b[t], from 0
  kProduct,  // h = a[t] * h, from 1
  kLinear,   // h = a[t] * h + b[t], from 0
  kArgMax,   // i32: the last t so far at which b[t] is the maximum; NaN counts as the maximum
  kArgMin,   // likewise for the minimum
};

// The level of a value in a row launch: one per row or one per element.
enum class Level : std::uint8_t { kRow, kElement };

struct Instr {
  InstrKind kind = InstrKind::kConst;
  DType dtype = DType::kF32;
  Level level = Level::kElement;
  const PointwiseCode* code = nullptr;  // kOp
  // kReduce. max and min return NaN if an element is NaN. argmax and argmin (i32) return the index
  // of the first NaN, else of the first of equal elements.
  ReduceOp reduce = ReduceOp::kSum;
  std::vector<int> operands = {};
  std::uint32_t bits = 0;  // kConst
  // kRuntimeScalar: index of the word. kLoad, kLoadAt, kInBounds: index of the access.
  int index = 0;
  std::int64_t divisor = 1, modulus = 1;  // kCoord
};

// A read through a binding. The map takes the linear index of the element, or at row level the row
// index.
struct Access {
  int binding = 0;
  DType dtype = DType::kF32;
  Level level = Level::kElement;
  IndexMap map;                // element offset from the binding's start
  std::int64_t at_stride = 0;  // kLoadAt only
  std::int64_t at_size = 0;    // kLoadAt only
};

// A write of an instruction's value. The element offset in the binding is map(index), plus the u32
// runtime scalar `ring_word` if ring_word >= 0. The map has one view and no mask, and stores of
// different elements have different offsets.
//
// If at >= 0 (maps only), v is the value of instruction `at` (i32), and the offset is map(index) +
// at_stride * v. Elements with v outside of [0, at_size) are not stored. The other elements of the
// binding keep their values, so its mode is kReadWrite.
struct Store {
  int binding = 0;
  DType dtype = DType::kF32;
  Level level = Level::kElement;
  IndexMap map;
  int value = 0;
  int ring_word = -1;
  int at = -1;
  std::int64_t at_stride = 0, at_size = 0;
};

struct ScalarProgram {
  std::vector<Instr> instrs;
  std::vector<Access> accesses;
};

// ---- launches --------------------------------------------------------------------------------

enum class BindMode : std::uint8_t { kRead, kWrite, kReadWrite };

// A range of a buffer that a launch accesses. A launch binds a buffer twice only if both bindings
// are read-only.
struct Binding {
  int buffer = 0;                      // index into Program::buffers
  std::int64_t offset = 0, bytes = 0;  // offset: a multiple of 256
  BindMode mode = BindMode::kRead;
};

// The kinds of launches. `kName` is the name of the kind in dumps. The body (for some an epilogue)
// and the stores are those of the Launch.

// The body over `rows` independent elements. All its instructions are at element level.
struct MapLaunch {
  static constexpr const char* kName = "map";
  std::int64_t rows = 1;
};

// The body over rows x cols elements, linear index = row * cols + col, with reductions over cols.
struct RowLaunch {
  static constexpr const char* kName = "row";
  std::int64_t rows = 1, cols = 1;
};

// out[b,m,n] = epilogue(sum_k a[b,m,k] * b[b,k,n]). The domain of the epilogue is batch*m*n,
// row-major.
struct ContractionLaunch {
  static constexpr const char* kName = "contraction";
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  // Split-K: if parts > 1, out[p,m,n] is the sum over the p-th slice of k. Slices have `part_depth`
  // steps; the last one may have fewer. Requires batch == 1 and no bias gradient. The epilogue is
  // over parts*m*n.
  std::int64_t parts = 1, part_depth = 0;
  // If true, the epilogue is that of a row launch over m rows and n columns, whose elements are
  // kAcc. Requires batch == 1, at most kMaxRowColumns columns, and no bias gradient.
  bool by_rows = false;
  // The last instruction of an operand program (f32) is the operand's element.
  ScalarProgram a = {};  // over batch*m*k, row-major
  // If true, `a` is a program like the body of a row launch over m rows and k columns. A workgroup
  // computes A before it multiplies. Requires batch == 1, at most kMaxOperandRows rows and
  // kMaxOperandElements elements, no split-K, no row epilogue and no bias gradient.
  bool a_by_rows = false;
  ScalarProgram b = {};  // over batch*k*n, row-major
  // Fused bias gradient. With bias_grad_row, A has an additional row m of ones, so that row m of
  // the product is the column sum of B. It is stored by `bias_grad_store` (over n), and the body
  // does not see it. With bias_grad_column, B has an additional column of ones, and
  // `bias_grad_store` stores the row sum of A (over m). At most one of them is set. Requires batch
  // == 1.
  bool bias_grad_row = false, bias_grad_column = false;
  Store bias_grad_store = {};

  [[nodiscard]] bool has_bias_grad() const { return bias_grad_row || bias_grad_column; }
};

// out[p,v,q] = epilogue(sum of src[p,i,q] over i with index[p,i,q] == v). Sources
// src[pre, count, post], result [pre, size, post].
struct ScatterLaunch {
  static constexpr const char* kName = "scatter";
  std::int64_t pre = 1, count = 1, post = 1, size = 1;
  ScalarProgram index = {};   // over pre*count*post; last instruction i32; out of range: dropped
  ScalarProgram source = {};  // over pre*count*post; last instruction f32, i32 or u32
};

// out[p,t,q] = epilogue(h of line (p, q) after elements 0 to t), with lines of `count` elements
// over [pre, count, post]. The element programs have that domain: `b` (f32, i32 or u32), `a` for
// kProduct (the same types), both (f32) for kLinear.
struct ScanLaunch {
  static constexpr const char* kName = "scan";
  std::int64_t pre = 1, count = 1, post = 1;
  ScanOp op = ScanOp::kSum;
  bool reverse = false;  // runs from the last element of a line to the first
  ScalarProgram a = {}, b = {};

  // Returns the element program that has the type of the line.
  [[nodiscard]] const ScalarProgram& line() const { return op == ScanOp::kProduct ? a : b; }
  // Returns the type of h.
  [[nodiscard]] DType dtype() const {
    const bool index = op == ScanOp::kArgMax || op == ScanOp::kArgMin;
    return index ? DType::kI32 : line().instrs.back().dtype;
  }
};

// out[p,i,q] = epilogue(t of the i-th key[p,t,q] of line (p, q) in sort order). The sort is stable;
// NaN counts as the largest.
struct SortLaunch {
  static constexpr const char* kName = "sort";
  std::int64_t pre = 1, count = 1, post = 1;
  bool descending = false;
  ScalarProgram keys = {};  // over pre*count*post; last instruction f32, i32 or u32
};

// A kernel written by hand. There is no body; Store::value is the number of the result.
struct OpaqueLaunch {
  std::shared_ptr<const OpaqueKernel> kernel = nullptr;
  // The programs of the kernel's inputs, over their elements. An absent input has no instructions.
  std::vector<ScalarProgram> inputs = {};

  template <class Which>
  [[nodiscard]] const ScalarProgram& input(Which which) const {
    return inputs[static_cast<std::size_t>(which)];
  }
};

using LaunchKind = Variant<MapLaunch, RowLaunch, ContractionLaunch, ScatterLaunch, ScanLaunch,
                           SortLaunch, OpaqueLaunch>;

struct Launch {
  LaunchKind kind;
  std::string name;                       // from the ops: "matmul_bias_relu"
  std::vector<std::string> ops;           // what was fused, with shapes: "add f32[256,64]"
  std::vector<SourceLocation> locations;  // locations in user code
  // Index of the launch before fit_bindings(). Launches split from one launch share it.
  int planned = 0;
  // True for a concurrent launch: it is independent of the preceding launches, back to and
  // including the last one that is not `concurrent`. A backend may run the group as one dispatch.
  // The launches share no written buffer except the gradient arena, in which they write disjoint
  // ranges.
  bool concurrent = false;
  // True if the launch continues a fused sequence, which begins at the last preceding launch that
  // is not `fused_sequence`. The elements that a launch writes are cut into `blocks` equal blocks.
  // Block i reads only what block i of the preceding launches of the sequence wrote. A backend may
  // run the sequence as one kernel with one workgroup per block. `blocks` is 0 outside of fused
  // sequences.
  bool fused_sequence = false;
  std::int64_t blocks = 0;
  std::vector<Binding> bindings;
  // The body of maps and row launches, the epilogue of others, over Window::columns elements per
  // row. Empty for opaque launches.
  ScalarProgram body;
  std::vector<Store> stores;
  // The range of rows that this launch computes; row_count == 0: all rows. Set if several launches
  // split the work because a buffer exceeds the binding limit. Maps, indices and coordinates still
  // refer to the whole. If the range covers several batches (or pre), it consists of whole ones.
  // The number of rows is:
  // - MapLaunch, RowLaunch: rows
  // - ContractionLaunch: batch * m, or parts * m; bias_grad_row is not counted
  // - ScatterLaunch: pre * size
  // - ScanLaunch, SortLaunch: pre
  // - OpaqueLaunch: OpaqueKernel::rows
  std::int64_t first_row = 0, row_count = 0;
  // Estimates for reports, made at planning: bytes the launch must move, and 2 * multiply-adds.
  std::int64_t bytes_moved = 0, flops = 0;

  template <class Kind>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<Kind>(kind);
  }
  // Returns null if the launch is of another kind.
  template <class Kind>
  [[nodiscard]] const Kind* find() const {
    return std::get_if<Kind>(&kind);
  }
  // The launch must be of this kind.
  template <class Kind>
  [[nodiscard]] const Kind& as() const {
    return std::get<Kind>(kind);
  }
  template <class Kind>
  [[nodiscard]] Kind& as() {
    return std::get<Kind>(kind);
  }
};

// The range of rows of a launch: a range of batches (pre) and of the rows in each. Maps and row
// launches have one batch.
struct Window {
  std::int64_t outer_first = 0, outer_count = 1, first = 0, count = 1;
  std::int64_t pitch = 1;    // rows per batch in total
  std::int64_t columns = 1;  // elements of the body per row

  [[nodiscard]] std::int64_t rows() const { return outer_count * count; }
  [[nodiscard]] std::int64_t first_row() const { return outer_first * pitch + first; }
  [[nodiscard]] std::int64_t end() const { return first + count; }
};
Window window_of(const Launch& launch);

// ---- programs --------------------------------------------------------------------------------

enum class BufferKind : std::uint8_t {
  kParams,    // the parameter arena
  kGrads,     // the gradient arena
  kState,     // optimizer moments, counters, user state
  kInput,     // written by the host before each step
  kData,      // device-resident data, written once
  kConstant,  // literal data, written once
  kOutput,    // read back by the host
  kSlot,      // shared by values with disjoint live ranges
};

// Returns the name of a buffer: a prefix for its kind, then the user's name. The prefix prevents
// clashes with internal names ("input x", "state optim.exp_avg", "params", "slot 3").
std::string buffer_name(BufferKind kind, const std::string& name);

struct BufferDecl {
  std::string name;
  BufferKind kind = BufferKind::kSlot;
  std::int64_t bytes = 0;           // a multiple of 256
  std::vector<std::uint32_t> data;  // kConstant: contents
};

// Returns what a buffer holds, for messages to the user.
std::string buffer_text(const BufferDecl& buffer);

// A value that the host reads or writes: a range of a buffer.
struct Port {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  int buffer = 0;
  std::int64_t offset = 0;  // bytes
};

// Runtime scalars: one row of 32-bit words per step. Words 0 and 1 are always the bit patterns of
// +inf and of a quiet NaN, as WGSL has no literals for them.
inline constexpr int kScalarInf = 0;
inline constexpr int kScalarNan = 1;
inline constexpr int kMaxRuntimeScalars = 64;

struct RuntimeScalars {
  std::uint32_t words[kMaxRuntimeScalars];
};

// What the host does between two launches, together with the other ranks of distributed training.
struct HostStep {
  enum class Kind : std::uint8_t {
    kGather,  // writes the parameters of a bucket, which the ranks keep parts of, into the buffer
    kReduce,  // averages the gradients of a bucket, which the buffer has, over the ranks
    kSum,     // replaces the scalar in the buffer by its sum over the ranks
  };
  Kind kind = Kind::kGather;
  int bucket = -1;  // not for kSum
  int buffer = -1;
  std::size_t before = 0;  // the launch that it precedes; not within concurrent launches
  bool operator==(const HostStep&) const = default;
};

struct Program {
  std::vector<BufferDecl> buffers;
  std::vector<Launch> launches;  // in order
  // In order. If there are any, the launches before and after each are run separately.
  std::vector<HostStep> host_steps;
  // Outputs kept in a ring have a leading dimension of `ring` elements.
  std::vector<Port> inputs, outputs;
  std::vector<std::string> scalars;  // names of the words in use, from word 2 on
  std::int64_t peak_bytes = 0;       // sum of all buffers
};

// Returns true if the index of (p, i) is known to be the same for all q.
bool index_repeats(const ScatterLaunch& scatter);

// Returns the kernel of a launch if it has the given type, otherwise null.
template <class Kernel>
const Kernel* find_kernel(const Launch& launch) {
  const auto* opaque = launch.find<OpaqueLaunch>();
  return opaque == nullptr ? nullptr : dynamic_cast<const Kernel*>(opaque->kernel.get());
}
template <class Kernel>
const Kernel& kernel_of(const Launch& launch) {
  return dynamic_cast<const Kernel&>(*launch.as<OpaqueLaunch>().kernel);
}

// Returns all scalar programs of a launch, including empty ones.
std::vector<ScalarProgram*> programs_of(Launch& launch);
std::vector<const ScalarProgram*> programs_of(const Launch& launch);

// Returns all stores of a launch, including that of a bias gradient.
std::vector<Store*> stores_of(Launch& launch);
std::vector<const Store*> stores_of(const Launch& launch);

// Throws InternalError if a launch violates a rule stated above.
void verify(const Program& program);
// Returns the kind of a launch, such as "map" or "row"; for opaque launches the kernel's name.
std::string kind_name(const Launch& launch);
// Maximum number of columns of a contraction with by_rows, and the workgroup memory it needs on a
// GPU.
inline constexpr int kMaxRowColumns = 64;
inline constexpr std::int64_t kRowEpilogueBytes = 32 << 10;
// Maximum number of rows and of elements of the first operand of a contraction with a_by_rows. The
// elements take 24 KiB of kRowEpilogueBytes.
inline constexpr std::int64_t kMaxOperandRows = 4, kMaxOperandElements = 6 << 10;
// Rows of a contraction per block of a fused sequence.
inline constexpr std::int64_t kFusedSequenceRows = 8;
// Returns the number of kernels on a device that runs each fused sequence, and each group of
// concurrent launches, as one kernel.
std::int64_t count_dispatches(const Program& program);
// Returns the sizes of a launch: "1024", "64x10", "64x128x784" (m, n, k), "3/64x128x784".
std::string domain_text(const Launch& launch);
// Returns the name of the buffer, and the range if it is not the whole: "params bytes 256 to 1279".
std::string bound_text(const Program& program, const Binding& binding);

// Returns the table of launches and buffers as text.
std::string print(const Program& program);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
