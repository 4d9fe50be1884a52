// SPDX-License-Identifier: MIT
// What a backend is given: launches over buffers. A Launch is one kernel on a GPU, one parallel
// loop on the CPU. Nothing here knows of ops, graphs or devices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/view.h"
#include "kernel/attention_part.h"
#include "kernel/pointwise.h"
#include "kernel/selective.h"
#include "tensorgrad/error.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// ---- scalar programs -------------------------------------------------------------------------

// A step of a scalar program. Programs are in single-assignment form: the value of instruction i is
// named by i, and operands have smaller names.
enum class InstrKind : std::uint8_t {
  kConst,   // the 32-bit pattern `bits`, of type dtype
  kHyper,   // word `index` of the step's hyper row, bitcast to dtype
  kIndex,   // the linear index in the program's domain, u32. (Row level: the row's number.)
  kCoord,   // coordinate of the element on an axis: (linear / divisor) % modulus, u32
  kLoad,    // accesses[index] at this element; zero where its map is not valid
  kLoadAt,  // gather: accesses[index] at map(element) + at_stride * v, v = operand 0 (i32 or u32);
            // zero where v is not in [0, at_size)
  kInBounds,  // bool: is the map of accesses[index] valid at this element?
  kOp,        // pointwise op on operands
  kReduce,    // row launches: operand 0 (element level) reduced over the columns; row level
  kAcc,       // epilogues: the value that the launch made of its operands
};

enum class ReduceOp : std::uint8_t { kSum, kMax, kMin, kArgMax, kArgMin };

// What a scan keeps along a line of elements a[t] and b[t].
enum class ScanOp : std::uint8_t {
  kSum,      // h = h + b[t], from 0
  kProduct,  // h = a[t] * h, from 1
  kLinear,   // h = a[t] * h + b[t], from 0
  kArgMax,   // i32: the last t so far at which b[t] is the largest; NaN wins
  kArgMin,
};

struct CustomKernel;  // ir/custom.h

// Where a value of a row launch lives: one per row, or one per element of the row.
enum class Level : std::uint8_t { kRow, kElement };

struct Instr {
  InstrKind kind = InstrKind::kConst;
  DType dtype = DType::kF32;
  Level level = Level::kElement;
  const PointwiseCode* code = nullptr;  // kOp
  ReduceOp reduce = ReduceOp::kSum;     // kReduce. NaN wins max and min; the first NaN or the
                                        // first of equals wins argmax and argmin (i32 result)
  std::vector<int> operands = {};
  std::uint32_t bits = 0;                 // kConst
  int index = 0;                          // kHyper: word; kLoad, kLoadAt, kInBounds: access
  std::int64_t divisor = 1, modulus = 1;  // kCoord
};

// A read through a binding. Element-level maps go from the element's linear index in the domain;
// row-level maps (level kRow) from the row's number.
struct Access {
  int binding = 0;
  DType dtype = DType::kF32;
  Level level = Level::kElement;
  IndexMap map;                // element offset from the binding's start
  std::int64_t at_stride = 0;  // kLoadAt only
  std::int64_t at_size = 0;    // kLoadAt only
};

// A write: the value of an instruction to binding, element offset map(index) (one view, no mask,
// one-to-one) plus, where ring_word >= 0, the u32 hyper word of that number.
struct Store {
  int binding = 0;
  DType dtype = DType::kF32;
  Level level = Level::kElement;
  IndexMap map;
  int value = 0;
  int ring_word = -1;
};

struct ScalarProgram {
  std::vector<Instr> instrs;
  std::vector<Access> accesses;
};

// ---- launches --------------------------------------------------------------------------------

enum class LaunchKind : std::uint8_t {
  kMap,          // body over rows*cols elements, cols == 1: every element by itself
  kRow,          // body over rows x cols, with reductions over cols
  kContraction,  // out[b,m,n] = epilogue(sum_k a[b,m,k] * b[b,k,n]); see Launch::parts
  kScatter,      // out[p,v,q] = epilogue(sum over i with index[p,i,q] == v of src[p,i,q])
  kScan,         // out[p,t,q] = epilogue(h of line (p, q) after its elements 0 to t)
  kSort,       // out[p,i,q] = epilogue(the t that is number i of line (p, q) in order of b[p,t,q])
  kAttention,  // see AttentionPart
  kSelectiveScan,  // see SelectivePart
  kCustom,         // out[i] = the user's element i, over `rows` elements
};

enum class BindMode : std::uint8_t { kRead, kWrite, kReadWrite };

// A part of a buffer that a launch touches. A launch binds two parts of a buffer only to read them.
struct Binding {
  int buffer = 0;                      // index into Program::buffers
  std::int64_t offset = 0, bytes = 0;  // offset: a multiple of 256
  BindMode mode = BindMode::kRead;
};

struct Launch {
  LaunchKind kind = LaunchKind::kMap;
  std::string name;                       // from the ops: "matmul_bias_relu"
  std::vector<std::string> ops;           // what was fused, with shapes: "add f32[256,64]"
  std::vector<SourceLocation> locations;  // the user's lines
  int planned = 0;  // its number before fit_bindings(); parts of one launch share it
  // It needs nothing of the launches before it, back to the last one without this mark, and none
  // of them needs anything of it: a device may run all of these as one kernel. Where they share a
  // buffer that one writes, it is the gradient arena, and they write different parts of it.
  bool beside = false;
  // It goes on with the launches back to the last one without this mark (a chain) block by block:
  // of what they write, each of `blocks` parts of its elements reads what the same part of theirs
  // wrote, and no more. A device may run them as one kernel, a block a workgroup. 0: in no chain.
  bool chained = false;
  std::int64_t blocks = 0;
  std::vector<Binding> bindings;

  // kMap, kRow: the domain is rows * cols, linear index = row * cols + col. kMap has cols == 1 and
  // everything at element level.
  std::int64_t rows = 1, cols = 1;
  // kContraction: the epilogue, over batch*m*n, row-major. With by_rows, which goes with one batch,
  // it is that of a row launch over m rows and n columns, whose elements kAcc gives.
  bool by_rows = false;
  ScalarProgram body;  // kMap, kRow. kContraction: the epilogue.
                       // kScatter: the epilogue, over pre*size*post; kScan, kSort: over
                       // pre*count*post
  std::vector<Store> stores;

  // kContraction. Operand programs end in the operand's element (their last instruction, f32).
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  // Of more than one part, out[p,m,n] is the sum over number p of them, `part_depth` steps of k (of
  // the last, what is left). batch is 1, and there are no ones; the epilogue is over parts*m*n.
  std::int64_t parts = 1, part_depth = 0;
  ScalarProgram a;  // over batch*m*k, row-major
  ScalarProgram b;  // over batch*k*n, row-major
  // With ones_row, A has one more row (number m, every element 1), so that row m of the product is
  // the column sum of B. batch is 1; the body does not see that row; it goes to `ones_store` (over
  // n). With ones_column, B has such a column, of which the row sum of A (over m) goes there. At
  // most one of the two is set.
  bool ones_row = false, ones_column = false;
  Store ones_store;

  // kScatter: sources src[pre, count, post], result [pre, size, post].
  std::int64_t pre = 1, count = 1, post = 1, size = 1;
  ScalarProgram scatter_index;   // over pre*count*post; last instruction i32; out of range: dropped
  ScalarProgram scatter_source;  // over pre*count*post; last instruction f32, i32 or u32

  // kScan, kSort: lines of `count` elements over [pre, count, post]. The elements are programs over
  // all of it: `b` (f32, i32 or u32), or for kProduct `a` (likewise), for kLinear both (f32).
  ScanOp scan = ScanOp::kSum;
  bool reverse = false;     // kScan: from the line's end to its beginning
  bool descending = false;  // kSort. Equal ones keep their order; NaN counts as the largest

  // kAttention: batch x m rows (T) x n columns (S), k the width of q and k, `width` that of v.
  // Inputs are programs over [batch, T or S, their width], lse and delta over [batch, T], mask
  // (bool, or f32 that is added) and keep over [batch, T, S]; without instructions where there is
  // none. There is no body. A store's value is the number of its result: o [batch, T, width] and
  // lse [batch, T], of which one may be missing; dq; dk and dv.
  AttentionPart part = AttentionPart::kForward;
  bool causal = false;  // p[i, j] = 0 for j > i; likewise where the mask is false
  bool half = false;    // p and ds may be rounded to f16; results are f16, but for lse
  float scale = 1;
  std::int64_t width = 1;
  std::vector<ScalarProgram> inputs;

  template <class Which>
  [[nodiscard]] const ScalarProgram& input(Which which) const {
    return inputs[static_cast<std::size_t>(which)];
  }

  // kSelectiveScan: batch, m steps, n channels, k states. Inputs as for kAttention, stores in turn.
  SelectivePart selective = SelectivePart::kForward;
  bool zero_order_hold = false, skip = false;  // w = (e^(delta A) - 1) / A, not delta; there is D

  // kCustom: `inputs` over their elements; no body, and the store's value is not used.
  std::shared_ptr<const CustomKernel> custom;

  // The rows that this launch computes, where several share the work because a buffer is larger
  // than a binding may be; 0: all. Rows are those of kMap and kRow, batch * m of a contraction
  // (with ones_row, its ones come on top), pre * size of a scatter, pre of a scan and of a sort,
  // batch of an attention and of a selective scan, elements of a custom one.
  // Several batches (or pre) are whole ones. Maps, indices and coordinates stay those of the whole.
  std::int64_t first_row = 0, row_count = 0;
  // Counted when planned, for reports: bytes the launch must move, and multiply-adds times two.
  std::int64_t bytes_moved = 0, flops = 0;
};

// The rows of a launch: of some batches (pre), and of each of these (kMap and kRow: of the one).
struct Window {
  std::int64_t outer_first = 0, outer_count = 1, first = 0, count = 1;
  std::int64_t pitch = 1;  // rows of a batch in all

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
  kSlot,      // shared by values that do not live at the same time
};

// What a buffer is called: a word for its kind, and the user's name, which so
// cannot clash with ours ("input x", "state optim.exp_avg", "params", "slot 3").
std::string buffer_name(BufferKind kind, const std::string& name);

struct BufferDecl {
  std::string name;
  BufferKind kind = BufferKind::kSlot;
  std::int64_t bytes = 0;           // a multiple of 256
  std::vector<std::uint32_t> data;  // kConstant: the contents
};

// A value that the host writes or reads: a range of a buffer.
struct Port {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  int buffer = 0;
  std::int64_t offset = 0;  // bytes
};

// Run-time scalars: one row of 32-bit words per step. Words 0 and 1 are always the patterns of +inf
// and of a quiet NaN (WGSL has no literal for them).
inline constexpr int kHyperInf = 0;
inline constexpr int kHyperNan = 1;
inline constexpr int kHyperWords = 64;

struct HyperRow {
  std::uint32_t words[kHyperWords];
};

struct Program {
  std::vector<BufferDecl> buffers;
  std::vector<Launch> launches;       // in order
  std::vector<Port> inputs, outputs;  // outputs of `ring` rows have that many elements in front
  std::vector<std::string> hypers;    // name of each word in use, from word 2 on
  std::int64_t peak_bytes = 0;        // sum of all buffers
};

// Scatter launches: is the index the same for all q of a (p, i), as far as can be seen?
bool index_repeats(const Launch& launch);

// Elements of an input of an attention launch, and of each of its results.
std::int64_t input_size(const Launch& launch, AttentionInput which);
std::vector<std::int64_t> attention_results(const Launch& launch);
SelectiveSizes selective_sizes(const Launch& launch);
bool keeps_states(const Launch& launch);  // the forward pass, where something flows back

// All scalar programs of a launch, empty ones too.
std::vector<ScalarProgram*> programs_of(Launch& launch);
std::vector<const ScalarProgram*> programs_of(const Launch& launch);

DType scan_dtype(const Launch& launch);  // of a scan's value before the epilogue
// The elements of a scan or a sort whose type is the line's: `b`, or `a` of a product.
const ScalarProgram& line_program(const Launch& launch);

// Throws InternalError where a launch breaks a rule stated above.
void verify(const Program& program);
const char* kind_name(LaunchKind kind);  // "map", "row", "selective_scan" ...
// Columns that a contraction with by_rows may have, and workgroup memory that a GPU needs for it.
inline constexpr int kMostRowColumns = 64;
inline constexpr std::int64_t kRowEpilogueBytes = 32 << 10;
inline constexpr std::int64_t kChainRows = 8;  // of a contraction, in a block of a chain
// Kernels that a device runs which joins chains and the launches beside each other.
std::int64_t count_dispatches(const Program& program);
// The sizes that a launch goes over: "1024", "64x10", "64x128x784" (m, n, k), "3/64x128x784".
std::string domain_text(const Launch& launch);
// The buffer, with the range where it is not all of it: "params bytes 256 to 1279".
std::string bound_text(const Program& program, const Binding& binding);

// The launch table and the buffers, as text.
std::string print(const Program& program);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
