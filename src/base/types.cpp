// SPDX-License-Identifier: MIT
// String conversions of element types and shapes; number of elements.
#include "tensorgrad/types.h"

#include <limits>

namespace tensorgrad::inline TENSORGRAD_ABI {

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "f32";
    case DType::kI32: return "i32";
    case DType::kU32: return "u32";
    case DType::kBool: return "bool";
    case DType::kF16: return "f16";
  }
  return "?";
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::int64_t numel(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(n, size, &n)) return std::numeric_limits<std::int64_t>::max();
  }
  return n;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
