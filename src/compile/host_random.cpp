// SPDX-License-Identifier: MIT
#include "compile/host_random.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "kernel/scalar_math.h"

namespace tensorgrad {
namespace {

constexpr double kTwoToMinus24 = 1.0 / 16777216.0;

}  // namespace

std::uint32_t random_word(std::uint32_t index, std::uint32_t stream, std::uint32_t seed,
                          std::uint32_t step) {
  using scalar_math::Uint;
  return scalar_math::philox(Uint{index}, Uint{stream}, Uint{seed}, Uint{step}).v;
}

double random_uniform(std::uint32_t index, std::uint32_t stream, std::uint32_t seed,
                      std::uint32_t step) {
  return (random_word(index, stream, seed, step) >> 8) * kTwoToMinus24;
}

double random_normal(std::uint32_t index, std::uint32_t stream, std::uint32_t seed,
                     std::uint32_t step) {
  const double u = random_uniform(2 * index, stream, seed, step);
  const double v = random_uniform(2 * index + 1, stream, seed, step);
  return std::sqrt(-2.0 * std::log(1.0 - u)) * std::cos(2.0 * std::numbers::pi * v);
}

std::vector<std::int32_t> random_order(std::int64_t n, std::uint32_t seed, std::uint32_t epoch) {
  std::vector<std::int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (auto i = static_cast<std::uint32_t>(n); i-- > 1;) {
    // 64-bit scaling: the bias is below 2^-32 * n, far under what any use of it could see
    const std::uint64_t word = random_word(i, kOrderStream, seed, epoch);
    const auto j = static_cast<std::size_t>((word * (i + 1ULL)) >> 32);
    std::swap(order[i], order[j]);
  }
  return order;
}

}  // namespace tensorgrad
