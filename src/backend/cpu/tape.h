// SPDX-License-Identifier: MIT
// A scalar program compiled for blocks: a list of vector operations over registers, each of which
// is a block of words in a worker's scratch, in a buffer, or shared. Values come in three forms:
// one for the whole launch (uniform), one per row, one per element.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "backend/cpu/simd.h"
#include "backend/cpu/step.h"
#include "kernel/row_plan.h"

namespace tensorgrad::cpu {

// Where a block stands. Elements [first, first + count) of the walk (swapped: column-major over the
// rows), of rows [row, row + rows).
struct Frame {
  Word** regs = nullptr;
  Word* elements = nullptr;    // scratch of element registers
  Word* row_values = nullptr;  // scratch of row registers
  const Word* acc = nullptr;   // the block of accumulated values, 64-byte aligned
  std::int64_t first = 0, count = 0, row = 0, rows = 0;
};

struct TapeReg {
  enum class Home { kElement, kRow, kShared, kAcc };
  Home home = Home::kElement;
  std::int64_t offset = 0;       // kElement, kRow: words
  const Word* shared = nullptr;  // kShared
};

struct TapeOp {
  enum class Kind {
    kCall,     // dst = fn(src...)
    kLoad,     // dst = data at the walker's offsets
    kBorrow,   // the same where offsets are neighbours: dst points into the buffer if it may
    kPeriod,   // dst = the `run` neighbours that a block repeats: calls read them by a mask
    kLoadAt,   // dst = data at offset + at_stride * src[0], guarded
    kValid,    // dst = is the walker's index valid?
    kOffsets,  // dst = the walker's offset itself: indices and coordinates
    kSpread,   // element dst = row src, along each row
    kFill,     // dst = uniform src
    kReduce,   // row dst = element src over its row
    kStore,    // store number `store`
  };
  Kind kind = Kind::kCall;
  bool row = false;          // over rows, not elements
  bool read_only = true;     // kBorrow: nothing writes the buffer meanwhile
  std::size_t mask[4] = {};  // kCall: of its operands, as CpuOperands has them
  int dst = -1, src[4] = {-1, -1, -1, -1};
  CpuBlockFn fn = nullptr;
  const Walker* walker = nullptr;
  const Word* data = nullptr;
  bool half = false;  // kLoad, kLoadAt: data are elements of f16
  std::int64_t at_stride = 0, at_size = 0;
  // kLoadAt: elements [i * run, (i + 1) * run) have one index, offsets in a row. kPeriod: a power
  // of two, at least kSplatWords.
  std::int64_t run = 1;
  ReduceOp reduce = ReduceOp::kSum;
  DType dtype = DType::kF32;
  int store = -1;  // kStore: which; others: the store that dst is written through directly, if any
};

struct TapeStore {
  const Walker* walker = nullptr;
  Word* data = nullptr;      // of the binding
  Word* target = nullptr;    // data plus the hyper word, set anew for each run
  bool half = false;         // data are elements of f16
  std::int64_t count = 0;    // elements of the binding
  std::int64_t highest = 0;  // largest offset written, without the hyper word
  int reg = -1;
  int ring_word = -1;
  bool row = false;
};

// A reduction that a pass over the columns completes.
struct TapeReduce {
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;  // of the operand
  int src = -1, dst = -1;     // element and row register
};

// A value of the whole launch: computed in 16 equal lanes.
struct TapeUniform {
  const Word* data = nullptr;  // of a uniform load: its element
  bool half = false;           // which is one of f16
  CpuBlockFn fn = nullptr;
  CpuOperands operands;
  int hyper = -1;
  Word* out = nullptr;  // kSplatWords
};

using TapeOps = std::vector<TapeOp>;

// One pass over the columns of some rows: `before` makes row values, once; `spreads` lays row
// values out for a run of blocks; `loop` is for every block.
struct TapePass {
  TapeOps before, spreads, loop;
  std::vector<TapeReduce> reduces;
};

struct TapeSpec {
  const ScalarProgram* program = nullptr;
  const std::vector<Store>* stores = nullptr;  // or null
  int result = -1;  // the instruction whose value the caller wants in a register, or -1
  std::int64_t batch = 1, rows = 1, cols = 1;  // the domain
  bool leveled = false;                        // row level values are per row; batch is 1
  bool swapped = false;                        // walk the domain column by column
  const RowPlan* plan = nullptr;  // stream over passes; null: blocks of whole rows, all at once
};

// A program of so many elements whose last instruction is wanted; a launch's body over so many.
TapeSpec operand_spec(const ScalarProgram& program, std::int64_t elements);
TapeSpec epilogue_spec(const Launch& launch, std::int64_t elements);

class Tape {
 public:
  Tape(const Prepare& prepare, const TapeSpec& spec);

  // Sets the capacity of blocks, in elements and rows, and lays the scratch out.
  void lay_out(std::int64_t elements, std::int64_t rows);
  [[nodiscard]] std::int64_t element_registers() const { return element_slots_; }
  // Scratch of a block, registers' table included.
  [[nodiscard]] std::size_t scratch_bytes() const;
  // Words of all row registers.
  [[nodiscard]] std::int64_t row_words() const { return row_slots_ * row_capacity_; }
  [[nodiscard]] std::int64_t capacity() const { return capacity_; }

  // Computes the uniform values and ring positions. Once per run, before any block.
  void start(const HyperRow& hyper);
  // Lays out a frame in scratch. `row_values`: null to keep them there too.
  Frame frame(std::byte* scratch, Word* row_values = nullptr) const;
  // Runs a list of this tape over a block.
  void run(const TapeOps& ops, Frame& frame) const;

  // Where the wanted value is, after `ops`.
  [[nodiscard]] const Word* result(const Frame& frame) const { return frame.regs[result_reg_]; }
  // The wanted value is one load of this walker, of words, and nothing else; null if it is not.
  [[nodiscard]] const Walker* plain_load(const Word** data) const;
  // All there is to do is to store the accumulated value, once, in words: that store; null if it is
  // not.
  [[nodiscard]] const TapeStore* plain_store() const;

  // A rough price of an element, in nanoseconds.
  [[nodiscard]] double element_cost() const { return cost_; }

  TapeOps ops;                   // without a plan: everything
  std::vector<TapePass> passes;  // with a plan
  TapeOps after;                 // with a plan: row values and stores at the end
  std::vector<TapeStore> stores;

 private:
  friend class TapeBuilder;

  [[nodiscard]] Word* home(int reg, const Frame& frame) const;
  void store_block(const TapeStore& store, const Frame& frame) const;
  void run_op(const TapeOp& op, Frame& frame) const;
  void spread(const TapeOp& op, Frame& frame) const;
  void reduce_rows(const TapeOp& op, const Frame& frame) const;

  std::string name_;
  std::deque<Walker> walkers_;
  std::vector<TapeReg> regs_;
  std::vector<TapeUniform> uniforms_;
  std::vector<AlignedBytes> uniform_memory_;
  std::int64_t rows_ = 1, cols_ = 1;
  bool swapped_ = false;
  int result_reg_ = -1, acc_reg_ = -1;
  std::int64_t element_slots_ = 0, row_slots_ = 0, capacity_ = 0, row_capacity_ = 0;
  double cost_ = 0;
};

}  // namespace tensorgrad::cpu
