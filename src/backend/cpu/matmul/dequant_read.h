// SPDX-License-Identifier: MIT
// Operands whose elements are packed several to a word. Recognizes programs traced by
// nn::QuantizedWeight and reads them with vector instructions, where a vector program would need a
// dozen passes. Other programs run on a vector program.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/matmul/dequant_kernels.h"
#include "backend/cpu/vector_program.h"

namespace tensorgrad::cpu {

class DequantRead {
 public:
  // Returns null if the program over [rows, cols] does not match. Lines run along rows (down a
  // column) if `along_rows`, otherwise along columns.
  static std::unique_ptr<DequantRead> recognise(const Prepare& prepare,
                                                const ScalarProgram& program, std::int64_t rows,
                                                std::int64_t cols, bool along_rows);

  // Reads elements [first, first + count) of a line.
  void read(std::int64_t line, std::int64_t first, std::int64_t count, float* out) const;
  // Prepares v in place for multiply().
  void arrange(float* v) const;
  // sums[i] = sum_k v[k] * (element k of line first + i) for i < count.
  void multiply(const float* v, std::int64_t first, std::int64_t count, float* sums) const;

 private:
  [[nodiscard]] const std::byte* data(std::int64_t line) const;
  [[nodiscard]] const float* scales(std::int64_t line) const;

  PackedKind kind_ = PackedKind::kHalf;
  const Word* words_ = nullptr;
  const float* scales_ = nullptr;                // or null
  std::vector<std::int32_t> line_, scale_line_;  // offset of each line, in elements of the leaf
  std::int64_t length_ = 0;                      // elements per line
  std::int64_t each_ = 1;                        // elements per scale: kPackedGroup or length_
};

}  // namespace tensorgrad::cpu
