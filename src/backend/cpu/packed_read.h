// SPDX-License-Identifier: MIT
// Operands whose elements are taken out of words that hold several of them: programs as
// nn::QuantizedWeight traces them, recognised so that vector instructions do what a tape would do
// in a dozen passes. What is not recognised is computed as any other program.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/packed_kernels.h"
#include "backend/cpu/tape.h"

namespace tensorgrad::cpu {

class PackedRead {
 public:
  // Null where the program, over [rows, cols], is none. Lines run along rows with `along_rows`
  // (down a column), else along columns.
  static std::unique_ptr<PackedRead> recognise(const Prepare& prepare, const ScalarProgram& program,
                                               std::int64_t rows, std::int64_t cols,
                                               bool along_rows);

  // Elements [first, first + count) of a line.
  void read(std::int64_t line, std::int64_t first, std::int64_t count, float* out) const;
  // sums[i] = sum_k v[k] * element k of line first + i, over whole lines, for i < count.
  void multiply(const float* v, std::int64_t first, std::int64_t count, float* sums) const;

 private:
  [[nodiscard]] const std::byte* data(std::int64_t line) const;
  [[nodiscard]] const float* scales(std::int64_t line) const;

  PackedKind kind_ = PackedKind::kHalf;
  const Word* words_ = nullptr;
  const float* scales_ = nullptr;                // or none
  std::vector<std::int32_t> line_, scale_line_;  // where a line begins: elements of the leaf
  std::int64_t length_ = 0;                      // of a line
  std::int64_t each_ = 1;  // elements of a line that have one scale: kPackedGroup or all
};

}  // namespace tensorgrad::cpu
