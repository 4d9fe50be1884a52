// SPDX-License-Identifier: MIT
// Vector loops that are no pointwise op: reductions, along memory and across it. Chosen once for
// the best instruction set of the machine.
#pragma once

#include <cstdint>

#include "kernel/program.h"

namespace tensorgrad::cpu {

// The result of a max, min, argmax or argmin so far: the pattern of the value and where it stands.
struct Best {
  std::uint32_t bits = 0;
  std::int64_t index = -1;  // -1: nothing seen yet
};

struct SimdTable {
  const char* target;  // "AVX2"

  // sum x[i], f32 in lanes over a thousand elements at a time, those in double.
  double (*sum)(const float* x, std::int64_t n);
  // out[r] = sum (largest, smallest; a NaN if there is one) over c of x[r * cols + c], for short
  // rows. Reads up to a vector past the end.
  void (*sum_rows)(const float* x, std::int64_t rows, std::int64_t cols, float* out);
  void (*max_rows)(const float* x, std::int64_t rows, std::int64_t cols, float* out);
  void (*min_rows)(const float* x, std::int64_t rows, std::int64_t cols, float* out);
  // out[r * cols + c] = x[r].
  void (*spread_rows)(const std::uint32_t* x, std::int64_t rows, std::int64_t cols,
                      std::uint32_t* out);
  // at[i] = data[at[i] + stride * index[i]] where index[i] < size and at[i] is not ~0; else 0. No
  // offset reaches 2^31. Runs on to the next multiple of 16 elements.
  void (*gather)(const std::uint32_t* data, std::uint32_t stride, std::uint32_t size,
                 const std::uint32_t* index, std::int64_t n, std::uint32_t* at);
  std::uint32_t (*sum_words)(const std::uint32_t* x, std::int64_t n);

  // acc[i] += x[i], and x[i] back to 0.
  void (*flush)(double* acc, float* x, std::int64_t n);
  // acc[i] += sum over c of x[c * stride + i], c < count.
  void (*add_rows)(float* acc, const float* x, std::int64_t count, std::int64_t stride,
                   std::int64_t n);

  // The largest or smallest of x[0..n), n >= 1: a NaN if there is one.
  float (*max)(const float* x, std::int64_t n);
  float (*min)(const float* x, std::int64_t n);

  // Elements of f16 as f32, and f32 rounded to f16 (base/half.h).
  void (*from_halves)(const std::uint16_t* x, std::int64_t n, float* out);
  void (*to_halves)(const float* x, std::int64_t n, std::uint16_t* out);
};

const SimdTable& simd();
// Heeds TENSORGRAD_CPU_TARGET. Before any kernel is chosen; later it has no effect.
void limit_targets();

// Rows shorter than this are short.
inline constexpr std::int64_t kShortRow = 48;

// Takes x[0..n), which stands at `first`, into `best`. The type is one of f32, i32, u32; the first
// NaN, or the first of equals, wins.
void take_best(ReduceOp op, DType dtype, const std::uint32_t* x, std::int64_t n, std::int64_t first,
               Best& best);
// Takes `other`, which stands behind everything in `best`.
void join_best(ReduceOp op, DType dtype, const Best& other, Best& best);

}  // namespace tensorgrad::cpu
