// SPDX-License-Identifier: MIT
// Accumulators of reductions over blocks of columns, for a group of rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/vector_program.h"

namespace tensorgrad::cpu {

// The accumulators of one reduction over `rows` rows, in memory of reducer_bytes(rows).
class Reducer {
 public:
  static constexpr std::int64_t kHeader = 64;

  Reducer(const VectorReduce& reduce, std::byte* memory, std::int64_t rows)
      : reduce_(reduce), memory_(memory), rows_(rows) {}

  void clear();
  // Adds a block of contiguous columns of one row, starting at column `first`.
  void take_row(const Word* x, std::int64_t count, std::int64_t first);
  // Adds a block of complete columns: x[c * rows + r].
  void take_columns(const Word* x, std::int64_t count, std::int64_t first);
  // Merges the accumulators of columns after all those that this object contains.
  void join(const Reducer& other);
  // Moves f32 sums into the doubles. Required before join() and finish().
  void settle();
  void finish(Word* out) const;

 private:
  [[nodiscard]] bool float_sum() const {
    return reduce_.op == ReduceOp::kSum && reduce_.dtype == DType::kF32;
  }
  // Number of columns in the f32 sums.
  [[nodiscard]] std::int64_t& unsettled() const {
    return *reinterpret_cast<std::int64_t*>(memory_);
  }
  [[nodiscard]] std::byte* values() const { return memory_ + kHeader; }
  [[nodiscard]] double* doubles() const { return reinterpret_cast<double*>(values()); }
  // Located after the doubles: f32 sums of a few columns.
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(doubles() + rows_); }
  [[nodiscard]] Word* words() const { return reinterpret_cast<Word*>(values()); }
  [[nodiscard]] Best* bests() const { return reinterpret_cast<Best*>(values()); }

  template <class T>
  void take_bests(const Word* x, std::int64_t count, std::int64_t first);

  const VectorReduce& reduce_;
  std::byte* memory_;
  std::int64_t rows_;
};

inline std::int64_t reducer_bytes(std::int64_t rows) {
  return Reducer::kHeader + round_up(rows * static_cast<std::int64_t>(sizeof(Best)), 64);
}

}  // namespace tensorgrad::cpu
