// SPDX-License-Identifier: MIT
// A scalar program compiled for blocks: a list of vector operations on registers. A register is a
// block of words in a worker's scratch memory, in a buffer, or shared. Values have three forms: one
// per launch (uniform), one per row, or one per element.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "backend/cpu/launch_runner.h"
#include "backend/cpu/simd.h"
#include "kernel/row_plan.h"

namespace tensorgrad::cpu {

// The current block: elements [first, first + count) in the order of the walk (column-major if
// swapped), in rows [row, row + rows).
struct Frame {
  Word** regs = nullptr;
  Word* elements = nullptr;    // scratch memory of element registers
  Word* row_values = nullptr;  // scratch memory of row registers
  const Word* acc = nullptr;   // the block of accumulated values, 64-byte aligned
  std::int64_t first = 0, count = 0, row = 0, rows = 0;
};

struct VectorRegister {
  enum class Home { kElement, kRow, kShared, kAcc };
  Home home = Home::kElement;
  std::int64_t offset = 0;       // kElement, kRow: in words
  const Word* shared = nullptr;  // kShared
};

struct VectorOp {
  enum class Kind {
    kCall,     // dst = fn(src...)
    kLoad,     // dst = data at the walker's offsets
    kBorrow,   // like kLoad with contiguous offsets; dst points into the buffer if possible
    kPeriod,   // dst = the `run` contiguous words that repeat; calls index them with a mask
    kLoadAt,   // dst = data at offset + at_stride * src[0], or 0 if out of range
    kValid,    // dst = 1 if the walker's index is valid, otherwise 0
    kOffsets,  // dst = the walker's offset itself: indices and coordinates
    kSpread,   // element dst = row src, broadcast along each row
    kFill,     // dst = a uniform value
    kReduce,   // row dst = reduction of element src over its row
    kStore,    // executes store `store`
  };
  Kind kind = Kind::kCall;
  bool row = false;          // per row instead of per element
  bool read_only = true;     // kBorrow: the buffer is not written during the launch
  std::size_t mask[4] = {};  // kCall: masks of the operands, see CpuOperands
  int dst = -1, src[4] = {-1, -1, -1, -1};
  CpuBlockFn fn = nullptr;
  const Walker* walker = nullptr;
  const Word* data = nullptr;
  bool half = false;  // kLoad, kLoadAt: the data are f16 elements
  std::int64_t at_stride = 0, at_size = 0;
  // kLoadAt: elements [i * run, (i + 1) * run) share an index and read contiguous offsets. kPeriod:
  // the period, a power of two and at least kSplatWords.
  std::int64_t run = 1;
  ReduceOp reduce = ReduceOp::kSum;
  DType dtype = DType::kF32;
  int store = -1;  // kStore: its number; others: store to write through to, or -1
};

struct VectorStore {
  const Walker* walker = nullptr;
  Word* data = nullptr;      // start of the binding
  Word* target = nullptr;    // data plus the ring position, set for each run
  bool half = false;         // the data are f16 elements
  std::int64_t count = 0;    // elements of the binding
  std::int64_t highest = 0;  // largest offset written, without the ring position
  int reg = -1;
  int ring_word = -1;
  bool row = false;
  int at_reg = -1;  // Store::at, or -1
  std::int64_t at_stride = 0, at_size = 0;
};

// A reduction that is completed by a pass over the columns.
struct VectorReduce {
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;  // of the operand
  int src = -1, dst = -1;     // element and row register
};

// A uniform value, computed in kSplatWords equal lanes.
struct VectorUniform {
  const Word* data = nullptr;  // address of a uniform load
  bool half = false;           // the load is an f16 element
  CpuBlockFn fn = nullptr;
  CpuOperands operands;
  int runtime_scalars = -1;
  Word* out = nullptr;  // kSplatWords
};

using VectorOps = std::vector<VectorOp>;

// One pass over the columns of some rows. `before` computes row values once, `spreads` broadcasts
// row values for all blocks, and `loop` runs for each block.
struct VectorPass {
  VectorOps before, spreads, loop;
  std::vector<VectorReduce> reduces;
};

struct VectorProgramSpec {
  const ScalarProgram* program = nullptr;
  const std::vector<Store>* stores = nullptr;  // or null
  int result = -1;  // the instruction whose value the caller reads from a register, or -1
  std::int64_t batch = 1, rows = 1, cols = 1;  // the domain
  bool leveled = false;                        // row-level values are per row; batch is 1
  bool swapped = false;                        // walk the domain column by column
  const RowPlan* plan = nullptr;               // passes to stream over; null: blocks of whole rows
};

// Return the spec of a program over `elements` elements whose last instruction is the result, and
// of a launch's body over `elements` elements.
VectorProgramSpec operand_spec(const ScalarProgram& program, std::int64_t elements);
VectorProgramSpec epilogue_spec(const Launch& launch, std::int64_t elements);

class VectorProgram {
 public:
  VectorProgram(const Prepare& prepare, const VectorProgramSpec& spec);

  // Sets the capacity of blocks in elements and rows, and the layout of the scratch memory.
  void lay_out(std::int64_t elements, std::int64_t rows);
  [[nodiscard]] std::int64_t element_registers() const { return element_slots_; }
  // Returns the scratch bytes of a block, including the register table.
  [[nodiscard]] std::size_t scratch_bytes() const;
  // Returns the words of all row registers.
  [[nodiscard]] std::int64_t row_words() const { return row_slots_ * row_capacity_; }
  [[nodiscard]] std::int64_t capacity() const { return capacity_; }

  // Computes the uniform values and ring positions. Must be called once per run, before any block.
  void start(const RuntimeScalars& runtime_scalars);
  // Lays out a frame in scratch memory. Row values are there, too, if `row_values` is null.
  Frame frame(std::byte* scratch, Word* row_values = nullptr) const;
  // Executes a list of this vector program's ops on a block.
  void run(const VectorOps& ops, Frame& frame) const;

  // Returns the result (VectorProgramSpec::result) after `ops` ran.
  [[nodiscard]] const Word* result(const Frame& frame) const { return frame.regs[result_reg_]; }
  // If the vector program only stores the accumulated value, once and as 32-bit words, returns that
  // store. Otherwise returns null.
  [[nodiscard]] const VectorStore* plain_store() const;

  // Returns the approximate nanoseconds per element.
  [[nodiscard]] double element_cost() const { return cost_; }

  VectorOps ops;                   // without a plan: all ops
  std::vector<VectorPass> passes;  // with a plan
  VectorOps after;                 // with a plan: final row values and stores
  std::vector<VectorStore> stores;

 private:
  friend class VectorProgramBuilder;

  [[nodiscard]] Word* home(int reg, const Frame& frame) const;
  void store_block(const VectorStore& store, const Frame& frame) const;
  static void store_at(const VectorStore& store, const Frame& frame);
  void run_op(const VectorOp& op, Frame& frame) const;
  void spread(const VectorOp& op, Frame& frame) const;
  void reduce_rows(const VectorOp& op, const Frame& frame) const;

  std::string name_;
  std::deque<Walker> walkers_;
  std::vector<VectorRegister> regs_;
  std::vector<VectorUniform> uniforms_;
  std::vector<AlignedBytes> uniform_memory_;
  std::int64_t rows_ = 1, cols_ = 1;
  bool swapped_ = false;
  int result_reg_ = -1, acc_reg_ = -1;
  std::int64_t element_slots_ = 0, row_slots_ = 0, capacity_ = 0, row_capacity_ = 0;
  double cost_ = 0;
};

}  // namespace tensorgrad::cpu
