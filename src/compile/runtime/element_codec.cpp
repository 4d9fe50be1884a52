// SPDX-License-Identifier: MIT
#include "compile/runtime/element_codec.h"

#include <bit>
#include <cstring>

#include "base/half.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

double decode_element(std::uint32_t word, DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16: return std::bit_cast<float>(word);
    case DType::kI32: return static_cast<std::int32_t>(word);
    default: return word;
  }
}

std::uint32_t encode_element(double value, DType dtype) {
  const auto narrow = static_cast<float>(value);
  switch (dtype) {
    case DType::kF32: return std::bit_cast<std::uint32_t>(narrow);
    case DType::kF16: return std::bit_cast<std::uint32_t>(from_half(to_half(narrow)));
    case DType::kI32: return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    default: return static_cast<std::uint32_t>(value);
  }
}

std::size_t stored_bytes(std::size_t count, DType stored) {
  return (count * element_bytes(stored) + kWordBytes - 1) / kWordBytes * kWordBytes;
}

std::vector<std::byte> to_stored(std::span<const std::uint32_t> words, DType stored) {
  std::vector<std::byte> bytes(stored_bytes(words.size(), stored));
  if (stored != DType::kF16) {
    std::memcpy(bytes.data(), words.data(), words.size_bytes());
    return bytes;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint16_t half = to_half(std::bit_cast<float>(words[i]));
    std::memcpy(&bytes[i * sizeof half], &half, sizeof half);
  }
  return bytes;
}

std::vector<std::uint32_t> from_stored(std::span<const std::byte> bytes, std::size_t count,
                                       DType stored) {
  std::vector<std::uint32_t> words(count);
  if (stored != DType::kF16) {
    std::memcpy(words.data(), bytes.data(), count * kWordBytes);
    return words;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, &bytes[i * sizeof half], sizeof half);
    words[i] = std::bit_cast<std::uint32_t>(from_half(half));
  }
  return words;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
