// SPDX-License-Identifier: MIT
// Element types and shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad {

// An element takes four bytes in memory, one of f16 (IEEE 754 binary16) two. A boolean is stored as
// the 32-bit word 0 or 1.
enum class DType : std::uint8_t { kF32, kI32, kU32, kBool, kF16 };

inline constexpr DType f32 = DType::kF32;
inline constexpr DType i32 = DType::kI32;
inline constexpr DType u32 = DType::kU32;
inline constexpr DType boolean = DType::kBool;
inline constexpr DType f16 = DType::kF16;

inline constexpr std::size_t kWordBytes = 4;
constexpr std::size_t element_bytes(DType dtype) {
  return dtype == DType::kF16 ? kWordBytes / 2 : kWordBytes;
}

// "f32", "i32", "u32", "bool", "f16".
std::string_view to_string(DType dtype);

// Sizes of the axes, outermost first; empty for a scalar. Every size is at least 1.
using Shape = std::vector<std::int64_t>;

// "[64,32]"; "[]" for a scalar.
std::string to_string(const Shape& shape);

// Product of the sizes; 1 for a scalar; the largest integer where it is larger than that.
std::int64_t numel(const Shape& shape);

}  // namespace tensorgrad
