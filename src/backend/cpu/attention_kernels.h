// SPDX-License-Identifier: MIT
// What attention does to rows of scores between its products, chosen once for the best instruction
// set of the machine. Arrays have room for whole vectors of up to 16 elements.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

struct AttentionKernels {
  // s[j] = scale * s[j] (+ added[j]), -inf where not allowed[j] and behind the end; `added` and
  // `allowed` may be null. Gives the largest of these and of `top`.
  float (*scores)(float* s, std::int64_t n, float scale, const float* added,
                  const std::uint32_t* allowed, float top);
  // s[j] = exp(s[j] - shift); gives their sum.
  float (*weights)(float* s, std::int64_t n, float shift);
  // dp[j] = p[j] * (dp[j] * keep[j] - delta); `keep` may be null: ones.
  void (*gradient)(const float* p, float* dp, const float* keep, std::int64_t n, float delta);
  // x[j] *= y[j]; x[j] *= factor.
  void (*multiply)(float* x, const float* y, std::int64_t n);
  void (*scale)(float* x, float factor, std::int64_t n);
};

const AttentionKernels& attention_kernels();

}  // namespace tensorgrad::cpu
