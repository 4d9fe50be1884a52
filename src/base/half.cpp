// SPDX-License-Identifier: MIT
#include "base/half.h"

#include <bit>

namespace tensorgrad::inline TENSORGRAD_ABI {

float from_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t rest = bits & 0x7fffU;
  std::uint32_t magnitude = 0;
  if (rest < 0x0400U) {  // subnormal: rest * 2^-24, a normal float
    magnitude = std::bit_cast<std::uint32_t>(static_cast<float>(rest) * 0x1p-24F);
  } else if (rest < 0x7c00U) {  // exponents are biased by 15 and by 127
    magnitude = (rest << 13) + ((127U - 15U) << 23);
  } else {  // infinity, NaN
    magnitude = (rest << 13) | 0x7f800000U;
  }
  return std::bit_cast<float>(sign | magnitude);
}

std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U, magnitude = bits & 0x7fffffffU;
  std::uint32_t rest = 0;
  if (magnitude > 0x7f800000U) {  // remains NaN
    rest = 0x7e00U | ((magnitude >> 13) & 0x03ffU);
  } else if (magnitude >= 0x477ff000U) {  // 65520
    rest = 0x7c00U;
  } else if (magnitude >= 0x38800000U) {  // 2^-14: normal
    rest = (magnitude - ((127U - 15U) << 23) + 0x0fffU + ((magnitude >> 13) & 1U)) >> 13;
  } else {  // floats near 0.5 are 2^-24 apart, as subnormal halves are
    rest = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  }
  return static_cast<std::uint16_t>(sign | rest);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
