// SPDX-License-Identifier: MIT
// Element types and shapes of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Element type of a tensor. Arithmetic on f16 tensors is computed in f32, and the result is
/// rounded to f16. If another operand is f32, the result is f32.
enum class DType : std::uint8_t {
  kF32,   ///< 32-bit float (IEEE 754 binary32).
  kI32,   ///< Signed 32-bit integer.
  kU32,   ///< Unsigned 32-bit integer.
  kBool,  ///< Boolean, stored as the 32-bit word 0 or 1.
  kF16    ///< 16-bit float (IEEE 754 binary16).
};

/// Short name of an element type.
inline constexpr DType f32 = DType::kF32;
inline constexpr DType i32 = DType::kI32;
inline constexpr DType u32 = DType::kU32;
inline constexpr DType boolean = DType::kBool;
inline constexpr DType f16 = DType::kF16;

/// Size in bytes of an element of any type except f16.
inline constexpr std::size_t kWordBytes = 4;

/// Returns the size of an element in bytes: 2 for f16, else 4.
constexpr std::size_t element_bytes(DType dtype) {
  return dtype == DType::kF16 ? kWordBytes / 2 : kWordBytes;
}

/// Returns the name of an element type: "f32", "i32", "u32", "bool" or "f16".
std::string_view to_string(DType dtype);

/// Sizes of the axes of a tensor, outermost first. The shape of a scalar is empty. Every size is at
/// least 1, and a tensor has at most 2^31 - 1 elements.
using Shape = std::vector<std::int64_t>;

/// Returns a shape as text, for example "[64,32]". A scalar has the shape "[]".
std::string to_string(const Shape& shape);

/// Returns the number of elements: the product of the sizes, or 1 for a scalar. If the product
/// overflows, returns the largest `std::int64_t`.
std::int64_t numel(const Shape& shape);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
