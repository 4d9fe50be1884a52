// SPDX-License-Identifier: MIT
// Eigen's product, in a file of its own: it is compiled for the machine that compiles it.
#pragma once

#include <cstdint>

namespace tensorgrad::bench {

// c [m, n] = a [m, k] x b [k, n], row-major.
void eigen_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
                float* c);

}  // namespace tensorgrad::bench
