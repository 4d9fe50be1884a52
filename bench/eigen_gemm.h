// SPDX-License-Identifier: MIT
// Eigen's product, in its own file because it is compiled with -march=native.
#pragma once

#include <cstdint>

namespace tensorgrad::bench {

// Computes c [m, n] = a [m, k] x b [k, n], row-major.
void eigen_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
                float* c);

}  // namespace tensorgrad::bench
