// SPDX-License-Identifier: MIT
// Vectorized loops other than pointwise ops: reductions along and across contiguous memory. Uses
// the best instruction set of the machine.
#pragma once

#include <cstdint>

#include "kernel/program.h"

namespace tensorgrad::cpu {

// Intermediate result of a max, min, argmax or argmin: the bits of the value and its index.
struct Best {
  std::uint32_t bits = 0;
  std::int64_t index = -1;  // -1: empty
};

struct SimdTable {
  const char* target;  // e.g. "AVX2"

  // Returns sum x[i]: in f32 lanes for 1024 elements at a time, and in double across these.
  double (*sum)(const float* x, std::int64_t n);
  // out[r] = sum (max, min; NaN if there is one) over c of x[r * cols + c], for short rows. Reads
  // up to a vector past the end.
  void (*sum_rows)(const float* x, std::int64_t rows, std::int64_t cols, float* out);
  void (*max_rows)(const float* x, std::int64_t rows, std::int64_t cols, float* out);
  void (*min_rows)(const float* x, std::int64_t rows, std::int64_t cols, float* out);
  // out[r * cols + c] = x[r].
  void (*spread_rows)(const std::uint32_t* x, std::int64_t rows, std::int64_t cols,
                      std::uint32_t* out);
  // at[i] = data[at[i] + stride * index[i]] if index[i] < size and at[i] is not ~0, otherwise 0.
  // Offsets must be less than 2^31. Continues to the next multiple of 16 elements.
  void (*gather)(const std::uint32_t* data, std::uint32_t stride, std::uint32_t size,
                 const std::uint32_t* index, std::int64_t n, std::uint32_t* at);
  std::uint32_t (*sum_words)(const std::uint32_t* x, std::int64_t n);

  // acc[i] += x[i], then x[i] = 0.
  void (*flush)(double* acc, float* x, std::int64_t n);
  // acc[i] += sum over c of x[c * stride + i], c < count.
  void (*add_rows)(float* acc, const float* x, std::int64_t count, std::int64_t stride,
                   std::int64_t n);

  // Return the maximum or minimum of x[0..n), n >= 1, or NaN if there is one.
  float (*max)(const float* x, std::int64_t n);
  float (*min)(const float* x, std::int64_t n);

  // Convert f16 to f32, and f32 to f16 with rounding (base/half.h).
  void (*from_halves)(const std::uint16_t* x, std::int64_t n, float* out);
  void (*to_halves)(const float* x, std::int64_t n, std::uint16_t* out);
};

const SimdTable& simd();
// Applies TENSORGRAD_CPU_TARGET. Must be called before any kernel is chosen; later calls have no
// effect.
void limit_targets();

// Rows shorter than this use the *_rows functions.
inline constexpr std::int64_t kShortRow = 48;

// Updates `best` with x[0..n), whose first element has index `first`. The type is f32, i32 or u32.
// The first NaN, or the first of equal elements, wins.
void take_best(ReduceOp op, DType dtype, const std::uint32_t* x, std::int64_t n, std::int64_t first,
               Best& best);
// Merges `other`, whose elements come after all those of `best`.
void join_best(ReduceOp op, DType dtype, const Best& other, Best& best);

}  // namespace tensorgrad::cpu
