// SPDX-License-Identifier: MIT
#include "io/elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/half.h"
#include "base/numbers.h"
#include "io/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

// Converts each element of type From by `convert(value, index)`.
template <class From, class Convert>
Elements converted(DType dtype, const StoredTensor& tensor, const Convert& convert) {
  const std::size_t count = tensor.data.size() / sizeof(From);
  Elements out{dtype, std::vector<std::byte>(count * element_bytes(dtype))};
  for (std::size_t i = 0; i < count; ++i) {
    From raw;
    std::memcpy(&raw, tensor.data.data() + i * sizeof raw, sizeof raw);
    const auto value = convert(raw, i);
    static_assert(sizeof value == sizeof(float));
    std::memcpy(out.bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return out;
}

template <class To, class From>
bool fits(From value) {
  if constexpr (std::is_integral_v<From>) {
    return std::in_range<To>(value);
  } else {
    return !std::isfinite(value) || std::abs(value) <= std::numeric_limits<To>::max();
  }
}

template <class T>
std::string text_of(T value) {
  if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    return number_text(value);
  }
}

template <class To, class From>
Elements narrowed(DType dtype, const std::string& where, const StoredTensor& tensor) {
  return converted<From>(dtype, tensor, [&](From value, std::size_t i) {
    if (fits<To>(value)) return static_cast<To>(value);
    throw IoError(where + ": element " + std::to_string(i) + " is " + text_of(value) +
                  ", which does not fit in " + std::string(to_string(dtype)));
  });
}

}  // namespace

float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

Elements to_elements(const std::string& file, const std::string& name, StoredTensor tensor) {
  const std::string where = file + ": tensor " + in_quotes(name) + " (" + tensor.dtype + ")";
  const std::string& dtype = tensor.dtype;
  const auto as_float = [&](auto convert) {
    return converted<std::uint16_t>(f32, tensor,
                                    [&](std::uint16_t bits, std::size_t) { return convert(bits); });
  };
  const auto as_int = [&]<class From>(From) {
    return narrowed<std::int32_t, From>(i32, where, tensor);
  };
  if (dtype == "F32") return {f32, std::move(tensor.data)};
  if (dtype == "U32") return {u32, std::move(tensor.data)};
  if (dtype == "I32") return {i32, std::move(tensor.data)};
  if (dtype == "F16") return as_float(from_half);
  if (dtype == "BF16") return as_float(from_bfloat16);
  if (dtype == "F64") return narrowed<float, double>(f32, where, tensor);
  if (dtype == "I64") return as_int(std::int64_t{});
  if (dtype == "U64") return as_int(std::uint64_t{});
  if (dtype == "I16") return as_int(std::int16_t{});
  if (dtype == "U16") return as_int(std::uint16_t{});
  if (dtype == "I8") return as_int(std::int8_t{});
  if (dtype == "U8") return as_int(std::uint8_t{});
  if (dtype == "BOOL") {
    return converted<std::uint8_t>(boolean, tensor, [](std::uint8_t value, std::size_t) {
      return static_cast<std::uint32_t>(value != 0);
    });
  }
  throw IoError(where + ": expected F64, F32, F16, BF16, an integer type or BOOL");
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
