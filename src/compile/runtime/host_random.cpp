// SPDX-License-Identifier: MIT
#include "compile/runtime/host_random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <utility>

#include "kernel/scalar_math.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
std::uint32_t random_word(std::uint32_t index, std::uint32_t stream, std::uint32_t seed,
                          std::uint32_t step) {
  using scalar_math::Uint;
  return scalar_math::philox(Uint{index}, Uint{stream}, Uint{seed}, Uint{step}).v;
}

void random_words(std::uint32_t first, std::uint32_t stream, std::uint32_t seed, std::uint32_t step,
                  std::span<std::uint32_t> words) {
  using scalar_math::Uint;
  for (std::size_t i = 0; i < words.size(); i += 4) {
    const auto block = static_cast<std::uint32_t>(first / 4 + i / 4);
    const auto [w0, w1, w2, w3] = scalar_math::philox_block<Uint>(
        {Uint{block}, Uint{step}, Uint{0}, Uint{0}}, Uint{seed}, Uint{stream});
    const std::array<std::uint32_t, 4> four{w0.v, w1.v, w2.v, w3.v};
    std::copy_n(four.begin(), std::min<std::size_t>(4, words.size() - i),
                words.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

double uniform_of(std::uint32_t word) { return (word >> 8) * 0x1p-24; }

double normal_of(std::uint32_t word, std::uint32_t other) {
  return std::sqrt(-2.0 * std::log(1.0 - uniform_of(word))) *
         std::cos(2.0 * std::numbers::pi * uniform_of(other));
}

void put_random_order(std::uint32_t seed, std::uint32_t epoch, std::span<std::int32_t> order) {
  const std::size_t n = order.size();
  std::iota(order.begin(), order.end(), 0);
  std::array<std::uint32_t, 64> words;  // the block of 64 words that contains word i
  for (auto i = static_cast<std::uint32_t>(n); i-- > 1;) {
    const std::uint32_t at = i % words.size();
    if (at + 1 == words.size() || i + 1 == static_cast<std::uint32_t>(n))
      random_words(i - at, kOrderStream, seed, epoch, words);
    // 64-bit scaling: the bias is below 2^-32 * n, which is negligible.
    const std::uint64_t word = words[at];
    const auto j = static_cast<std::size_t>((word * (i + 1ULL)) >> 32);
    std::swap(order[i], order[j]);
  }
}

std::vector<std::int32_t> random_order(std::int64_t n, std::uint32_t seed, std::uint32_t epoch) {
  std::vector<std::int32_t> order(static_cast<size_t>(n));
  put_random_order(seed, epoch, order);
  return order;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
