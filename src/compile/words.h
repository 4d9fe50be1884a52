// SPDX-License-Identifier: MIT
// Elements as 32-bit words, as the reference has them (doubles), and as they lie on a device. The
// word of an f16 is that of its value in f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

double from_word(std::uint32_t word, DType dtype);
// Rounds what is real to the type.
std::uint32_t to_word(double value, DType dtype);

// What `count` elements take on a device that keeps them as `stored`: whole words.
std::size_t stored_bytes(std::size_t count, DType stored);
std::vector<std::byte> to_stored(std::span<const std::uint32_t> words, DType stored);
std::vector<std::uint32_t> from_stored(std::span<const std::byte> bytes, std::size_t count,
                                       DType stored);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
