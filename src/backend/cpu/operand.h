// SPDX-License-Identifier: MIT
// An operand of a contraction as a matrix: strides into a buffer where its program is one strided
// load, offsets of rows and of columns where it reads windows, else computed block by block into
// scratch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/gemm.h"
#include "backend/cpu/packed_read.h"
#include "backend/cpu/tape.h"

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

// Splits a view over [batch, rows, cols] into a row stride and a column stride, the same
// everywhere, and an offset per batch. False where the view is not of that kind.
bool split_strides(const View& view, std::int64_t batch, std::int64_t rows, std::int64_t cols,
                   std::int64_t& rs, std::int64_t& cs, std::vector<std::int64_t>& offsets);

// Likewise with any offsets: element (batch, r, c) lies at the sum of the three.
bool split_offsets(const View& view, std::int64_t batch, std::int64_t rows, std::int64_t cols,
                   std::vector<std::int64_t>& of_batch, LineOffsets& of_row, LineOffsets& of_col);

class Operand {
 public:
  // The program's domain is [batch, rows, cols], row-major. `windows`: it may be windowed.
  Operand(const Prepare& prepare, const ScalarProgram& program, std::int64_t batch,
          std::int64_t rows, std::int64_t cols, bool windows = true);

  // It is computed along rows (or columns) of several elements in a word, cheaply.
  [[nodiscard]] bool packed() const { return packed_ != nullptr; }
  [[nodiscard]] const PackedRead& packed_read() const { return *packed_; }
  // Its elements lie in a buffer where offsets of their row and of their column say. It has no
  // block(): pack_rows() and pack_columns() read it.
  [[nodiscard]] bool windowed() const { return base_ != nullptr; }
  // Every batch has the same elements.
  [[nodiscard]] bool repeats() const;
  // It lies in a buffer as it is.
  [[nodiscard]] bool plain() const { return data_ != nullptr; }
  // The strides that block() will give, up to the leading dimension: which one is 1.
  [[nodiscard]] bool rows_are_contiguous() const { return plain() ? cs_ == 1 : !swapped_; }
  [[nodiscard]] bool columns_are_contiguous() const { return plain() ? rs_ == 1 : swapped_; }
  [[nodiscard]] std::int64_t row_stride() const { return rs_; }

  // Scratch that block() needs for `rows` x `cols` elements.
  [[nodiscard]] std::size_t scratch_bytes(std::int64_t rows, std::int64_t cols) const;
  void start(const HyperRow& hyper) {
    if (tape_) tape_->start(hyper);
  }
  // Packs rows [r, r + rows) or columns [c, c + cols) of a windowed one: a panel of `width` for the
  // kernels, over all of the other side.
  void pack_rows(std::int64_t batch, std::int64_t r, std::int64_t rows, std::int64_t width,
                 float* out) const;
  void pack_columns(std::int64_t batch, std::int64_t c, std::int64_t cols, std::int64_t width,
                    float* out) const;
  // Rows [r, r + rows), columns [c, c + cols) of a batch.
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
  std::unique_ptr<Tape> tape_;
  std::unique_ptr<PackedRead> packed_;
  bool swapped_ = false;  // computed column by column
};

}  // namespace tensorgrad::cpu
