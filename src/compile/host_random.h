// SPDX-License-Identifier: MIT
// The generator of the kernels (philox), on the host: initial values and the order of data.
#pragma once

#include <cstdint>
#include <vector>

namespace tensorgrad {

// Streams: the random ops of a trainer's graph count from 0, those of other functions from here, so
// that what an attached function draws at its n-th run is not what the n-th step drew.
inline constexpr std::uint32_t kForwardStream = 0x40000000U;
// Of host draws.
inline constexpr std::uint32_t kInitStream = 0x80000000U;  // plus the parameter's number
inline constexpr std::uint32_t kOrderStream = 0xc0000000U;

std::uint32_t random_word(std::uint32_t index, std::uint32_t stream, std::uint32_t seed,
                          std::uint32_t step);

// Uniform in [0, 1), 24 bits.
double random_uniform(std::uint32_t index, std::uint32_t stream, std::uint32_t seed,
                      std::uint32_t step);
// Mean 0, deviation 1; uses the words 2*index and 2*index + 1.
double random_normal(std::uint32_t index, std::uint32_t stream, std::uint32_t seed,
                     std::uint32_t step);

// 0..n-1 in an order that seed and epoch decide (Fisher and Yates).
std::vector<std::int32_t> random_order(std::int64_t n, std::uint32_t seed, std::uint32_t epoch);

}  // namespace tensorgrad
