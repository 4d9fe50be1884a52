// SPDX-License-Identifier: MIT
// An operand of a contraction as a matrix. Uses strides into a buffer if its program is one strided
// load, and offsets of rows and columns if it reads windows. Otherwise it is computed block by
// block into scratch memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/matmul/dequant_read.h"
#include "backend/cpu/matmul/gemm.h"
#include "backend/cpu/vector_program.h"

namespace tensorgrad::cpu {

// Element (r, c) is data[r * rs + c * cs].
struct Matrix {
  const float* data = nullptr;
  std::int64_t rs = 0, cs = 0;

  [[nodiscard]] Matrix at(std::int64_t r, std::int64_t c) const {
    return {data + r * rs + c * cs, rs, cs};
  }
  [[nodiscard]] Matrix transposed() const { return {data, cs, rs}; }
};

// Splits a view over [batch, rows, cols] into a constant row stride, a constant column stride, and
// an offset per batch. Returns false if this is not possible.
bool split_strides(const View& view, std::int64_t batch, std::int64_t rows, std::int64_t cols,
                   std::int64_t& rs, std::int64_t& cs, std::vector<std::int64_t>& offsets);

// Like split_strides(), with arbitrary offsets: the offset of element (batch, r, c) is the sum of
// the three.
bool split_offsets(const View& view, std::int64_t batch, std::int64_t rows, std::int64_t cols,
                   std::vector<std::int64_t>& of_batch, LineOffsets& of_row, LineOffsets& of_col);

class Operand {
 public:
  // The program's domain is [batch, rows, cols], row-major. `windows` allows windowed().
  Operand(const Prepare& prepare, const ScalarProgram& program, std::int64_t batch,
          std::int64_t rows, std::int64_t cols, bool windows = true);

  // True if the elements are unpacked from words along rows (or columns), which is cheap.
  [[nodiscard]] bool packed() const { return packed_ != nullptr; }
  [[nodiscard]] const DequantRead& dequant_read() const { return *packed_; }
  // True if the elements are in a buffer at the sum of a row offset and a column offset. Use
  // pack_rows() and pack_columns() instead of block().
  [[nodiscard]] bool windowed() const { return base_ != nullptr; }
  // True if all batches have the same elements.
  [[nodiscard]] bool repeats() const;
  // True if the operand is read from a buffer in place, with strides.
  [[nodiscard]] bool plain() const { return data_ != nullptr; }
  // True if block() returns a matrix with contiguous rows or columns, respectively.
  [[nodiscard]] bool rows_are_contiguous() const { return plain() ? cs_ == 1 : !swapped_; }
  [[nodiscard]] bool columns_are_contiguous() const { return plain() ? rs_ == 1 : swapped_; }
  [[nodiscard]] std::int64_t row_stride() const { return rs_; }

  // Returns the scratch bytes that block() needs for `rows` x `cols` elements.
  [[nodiscard]] std::size_t scratch_bytes(std::int64_t rows, std::int64_t cols) const;
  void start(const RuntimeScalars& runtime_scalars) {
    if (vector_program_) vector_program_->start(runtime_scalars);
  }
  // Packs rows [r, r + rows) or columns [c, c + cols) of a windowed operand into a panel of `width`
  // for the kernels, over the whole other axis.
  void pack_rows(std::int64_t batch, std::int64_t r, std::int64_t rows, std::int64_t width,
                 float* out) const;
  void pack_columns(std::int64_t batch, std::int64_t c, std::int64_t cols, std::int64_t width,
                    float* out) const;
  // Returns rows [r, r + rows) and columns [c, c + cols) of a batch.
  Matrix block(std::int64_t batch, std::int64_t r, std::int64_t rows, std::int64_t c,
               std::int64_t cols, std::byte* scratch) const;

 private:
  void evaluate(std::int64_t first, std::int64_t count, Frame& frame, Word* out) const;

  std::int64_t rows_, cols_;
  const float* data_ = nullptr;  // plain
  const float* base_ = nullptr;  // windowed
  LineOffsets row_at_, col_at_;  // windowed
  std::int64_t rs_ = 0, cs_ = 0;
  std::vector<std::int64_t> offsets_;
  std::unique_ptr<VectorProgram> vector_program_;
  std::unique_ptr<DequantRead> packed_;
  bool swapped_ = false;  // computed column by column
};

}  // namespace tensorgrad::cpu
