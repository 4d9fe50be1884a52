// SPDX-License-Identifier: MIT
#ifdef TENSORGRAD_BENCH_EIGEN
#include "eigen_gemm.h"

#include <Eigen/Core>

namespace tensorgrad::bench {

void eigen_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
                float* c) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Matrix> ea(a, m, k), eb(b, k, n);
  Eigen::Map<Matrix>(c, m, n).noalias() = ea * eb;
}

}  // namespace tensorgrad::bench
#endif
