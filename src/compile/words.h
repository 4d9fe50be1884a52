// SPDX-License-Identifier: MIT
// Elements as they lie in memory, 32-bit words, and as the reference has them, doubles.
#pragma once

#include <bit>
#include <cstdint>

#include "tensorgrad/types.h"

namespace tensorgrad {

inline double from_word(std::uint32_t word, DType dtype) {
  switch (dtype) {
    case DType::kF32: return std::bit_cast<float>(word);
    case DType::kI32: return static_cast<std::int32_t>(word);
    default: return word;
  }
}

inline std::uint32_t to_word(double value, DType dtype) {
  switch (dtype) {
    case DType::kF32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DType::kI32: return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    default: return static_cast<std::uint32_t>(value);
  }
}

}  // namespace tensorgrad
