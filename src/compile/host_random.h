// SPDX-License-Identifier: MIT
// The generator of the kernels (philox), on the host: initial values and the order of data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Streams: the random ops of a trainer's graph count from 0, those of other functions from here, so
// that what an attached function draws at its n-th run is not what the n-th step drew.
inline constexpr std::uint32_t kForwardStream = 0x40000000U;
// Of host draws.
inline constexpr std::uint32_t kInitStream = 0x80000000U;  // plus the parameter's number
inline constexpr std::uint32_t kOrderStream = 0xc0000000U;

// The run-time scalars that random ops read.
inline constexpr const char* kSeedScalar = "_seed";
inline constexpr const char* kStepScalar = "_step";

std::uint32_t random_word(std::uint32_t index, std::uint32_t stream, std::uint32_t seed,
                          std::uint32_t step);

// The words from `first`, a multiple of 4, on: four at a time, which takes a quarter of the time.
void random_words(std::uint32_t first, std::uint32_t stream, std::uint32_t seed, std::uint32_t step,
                  std::span<std::uint32_t> words);

// Uniform in [0, 1), 24 bits.
double uniform_of(std::uint32_t word);
// Mean 0, deviation 1 (Box and Muller).
double normal_of(std::uint32_t word, std::uint32_t other);

// 0..n-1 in an order that seed and epoch decide (Fisher and Yates).
void put_random_order(std::uint32_t seed, std::uint32_t epoch, std::span<std::int32_t> order);
std::vector<std::int32_t> random_order(std::int64_t n, std::uint32_t seed, std::uint32_t epoch);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
