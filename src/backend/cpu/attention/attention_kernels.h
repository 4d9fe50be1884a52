// SPDX-License-Identifier: MIT
// Row operations of attention between its products, for the best instruction set of the machine.
// Arrays must have room for whole vectors of up to 16 elements.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

struct AttentionKernels {
  // s[j] = scale * s[j] (+ added[j]), or -inf if !allowed[j] or j >= n. `added` and `allowed` may
  // be null. Returns the maximum of these and `top`.
  float (*scores)(float* s, std::int64_t n, float scale, const float* added,
                  const std::uint32_t* allowed, float top);
  // s[j] = exp(s[j] - shift). Returns their sum.
  float (*weights)(float* s, std::int64_t n, float shift);
  // dp[j] = p[j] * (dp[j] * keep[j] - delta). A null `keep` means ones.
  void (*gradient)(const float* p, float* dp, const float* keep, std::int64_t n, float delta);
  // x[j] *= y[j]; x[j] *= factor.
  void (*multiply)(float* x, const float* y, std::int64_t n);
  void (*scale)(float* x, float factor, std::int64_t n);
  // sum[j] += factor * x[j]. `sum` needs no room for whole vectors.
  void (*add)(const float* x, float factor, std::int64_t n, float* sum);
};

const AttentionKernels& attention_kernels();

}  // namespace tensorgrad::cpu
