// SPDX-License-Identifier: MIT
// Inner kernels of matrix products for the best instruction set of the machine. A micro-tile
// computes, for up to mr rows and nr columns,
//   c[i, j] (+)= sum_k a[i, k] * b[k, j]
// with k in order, so the bits of an element do not depend on its tile.
#pragma once

#include <cstdint>
#include <vector>

namespace tensorgrad::cpu {

inline constexpr int kMaxTileRows = 14;
inline constexpr int kMaxTileColumns = 32;

// Offsets of the rows (or columns) of a matrix, and the end of the contiguous run of each. Within a
// run, at[i + 1] = at[i] + 1.
struct LineOffsets {
  std::vector<std::int32_t> at, run_end;
};

struct GemmKernels {
  // A micro-tile. Always computes nr (or nr / 2) columns and reads as many from each row of b. The
  // operands are
  //   a[i, k] = a[i * a_row + k * a_k]; packed kernels use a_row = 1 and a_k = mr
  //   b[k, j] = b[k * b_k + j]
  //   c[i, j] = c[i * ldc + j]; accumulated if `add`, otherwise overwritten
  using Tile = void (*)(std::int64_t k, const float* a, std::int64_t a_row, std::int64_t a_k,
                        const float* b, std::int64_t b_k, float* c, std::int64_t ldc, bool add);

  const char* target;
  int mr, nr;
  // [number of rows][0: nr columns, 1: nr / 2 columns]
  Tile packed[kMaxTileRows + 1][2];
  Tile strided[kMaxTileRows + 1][2];

  // out[k * nr + j] = b[k * rs + j * cs] for k < depth, j < columns; unspecified for other j.
  void (*pack_b)(const float* b, std::int64_t rs, std::int64_t cs, std::int64_t depth,
                 std::int64_t columns, float* out);
  // out[k * mr + i] = a[i * rs + k * cs] for k < depth, i < rows; unspecified for other i.
  void (*pack_a)(const float* a, std::int64_t rs, std::int64_t cs, std::int64_t depth,
                 std::int64_t rows, float* out);

  // out[k * width + i] = data[along.at[k] + across.at[first + i]] for k < depth, i < lanes;
  // unspecified for other i. `width` is mr or nr.
  void (*pack_windows)(const float* data, const LineOffsets& along, std::int64_t depth,
                       const LineOffsets& across, std::int64_t first, std::int64_t lanes,
                       std::int64_t width, float* out);

  // c[j] = sum_k a[k] * b[k * b_k + j] for j < n.
  void (*row_times_rows)(std::int64_t depth, std::int64_t n, const float* a, const float* b,
                         std::int64_t b_k, float* c);
  // c[j] = sum_k a[k] * b[j * b_j + k] for j < n, vectorized over k.
  void (*row_times_columns)(std::int64_t depth, std::int64_t n, const float* a, const float* b,
                            std::int64_t b_j, float* c);

  // c[i * ldc + j] = sum_k a[i * a_row + k] * b[j * b_j + k] for i < rows, j < columns, vectorized
  // over k. The bits of an element depend neither on rows nor on columns.
  void (*dot_products)(std::int64_t depth, std::int64_t rows, std::int64_t columns, const float* a,
                       std::int64_t a_row, const float* b, std::int64_t b_j, float* c,
                       std::int64_t ldc);
};

const GemmKernels& gemm_kernels();

}  // namespace tensorgrad::cpu
