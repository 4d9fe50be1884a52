// SPDX-License-Identifier: MIT
// The inner kernels of matrix products, chosen once for the best instruction set of the machine.
// A micro-tile is c[i, j] (+)= sum_k a[i, k] * b[k, j] for up to mr rows and nr columns, k in
// order: an element's bits do not depend on the tile it is computed in.
#pragma once

#include <cstdint>
#include <vector>

namespace tensorgrad::cpu {

inline constexpr int kMaxTileRows = 14;
inline constexpr int kMaxTileColumns = 32;

// Offsets of the rows (or columns) of a matrix, with the end of the run of neighbours that each is
// in: at[i + 1] = at[i] + 1 within a run.
struct LineOffsets {
  std::vector<std::int32_t> at, run_end;
};

struct GemmKernels {
  // Always computes nr columns (or half of that), and reads as many from each row of b.
  // Row i of a is at a + i * a_row, element k of it a_k further each; the packed kind has a_row = 1
  // and a_k = mr. b + k * b_k; c + i * ldc. `add`: adds to c, does not replace it.
  using Tile = void (*)(std::int64_t k, const float* a, std::int64_t a_row, std::int64_t a_k,
                        const float* b, std::int64_t b_k, float* c, std::int64_t ldc, bool add);

  const char* target;
  int mr, nr;
  // [number of rows][0: nr columns, 1: nr / 2 columns]
  Tile packed[kMaxTileRows + 1][2];
  Tile strided[kMaxTileRows + 1][2];

  // out[k * nr + j] = b[k * rs + j * cs] for k < depth, j < columns; other j: anything.
  void (*pack_b)(const float* b, std::int64_t rs, std::int64_t cs, std::int64_t depth,
                 std::int64_t columns, float* out);
  // out[k * mr + i] = a[i * rs + k * cs] for k < depth, i < rows; other i: anything.
  void (*pack_a)(const float* a, std::int64_t rs, std::int64_t cs, std::int64_t depth,
                 std::int64_t rows, float* out);

  // out[k * width + i] = data[along.at[k] + across.at[first + i]] for k < depth, i < lanes; other
  // i: anything. `width` is mr or nr.
  void (*pack_windows)(const float* data, const LineOffsets& along, std::int64_t depth,
                       const LineOffsets& across, std::int64_t first, std::int64_t lanes,
                       std::int64_t width, float* out);

  // c[j] = sum_k a[k] * b[k * b_k + j] for j < n.
  void (*row_times_rows)(std::int64_t depth, std::int64_t n, const float* a, const float* b,
                         std::int64_t b_k, float* c);
  // c[j] = sum_k a[k] * b[j * b_j + k] for j < n, k spread over lanes.
  void (*row_times_columns)(std::int64_t depth, std::int64_t n, const float* a, const float* b,
                            std::int64_t b_j, float* c);
};

const GemmKernels& gemm_kernels();

}  // namespace tensorgrad::cpu
