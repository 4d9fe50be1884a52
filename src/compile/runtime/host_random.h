// SPDX-License-Identifier: MIT
// The random generator of the kernels (Philox) on the host, for initial values and data order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Stream numbers. The random ops of a trainer's graph count from 0, those of other functions from
// kForwardStream. So the n-th run of an attached function does not repeat the draws of the n-th
// step.
inline constexpr std::uint32_t kForwardStream = 0x40000000U;
// Streams of draws on the host.
inline constexpr std::uint32_t kInitStream = 0x80000000U;  // plus the number of the parameter
inline constexpr std::uint32_t kOrderStream = 0xc0000000U;

// The runtime scalars that random ops read.
inline constexpr const char* kSeedScalar = "_seed";
inline constexpr const char* kStepScalar = "_step";

std::uint32_t random_word(std::uint32_t index, std::uint32_t stream, std::uint32_t seed,
                          std::uint32_t step);

// Computes the words from `first` (a multiple of 4) on. Four times as fast as random_word().
void random_words(std::uint32_t first, std::uint32_t stream, std::uint32_t seed, std::uint32_t step,
                  std::span<std::uint32_t> words);

// Returns a uniform number in [0, 1) with 24 bits.
double uniform_of(std::uint32_t word);
// Returns a normal number with mean 0 and deviation 1 (Box and Muller).
double normal_of(std::uint32_t word, std::uint32_t other);

// Sets `order` to a permutation of 0..n-1 determined by seed and epoch (Fisher and Yates).
void put_random_order(std::uint32_t seed, std::uint32_t epoch, std::span<std::int32_t> order);
std::vector<std::int32_t> random_order(std::int64_t n, std::uint32_t seed, std::uint32_t epoch);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
