// SPDX-License-Identifier: MIT
// Conversion of elements between 32-bit words, doubles (as in the reference) and device memory. The
// word of an f16 is its value in f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

double decode_element(std::uint32_t word, DType dtype);
// Rounds floating-point values to the type.
std::uint32_t encode_element(double value, DType dtype);

// Returns the bytes of `count` elements on a device that stores them as `stored`, rounded up to
// whole words.
std::size_t stored_bytes(std::size_t count, DType stored);
std::vector<std::byte> to_stored(std::span<const std::uint32_t> words, DType stored);
std::vector<std::uint32_t> from_stored(std::span<const std::byte> bytes, std::size_t count,
                                       DType stored);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
