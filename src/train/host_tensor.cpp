// SPDX-License-Identifier: MIT
// Tensors in host memory.
#include "tensorgrad/train/host_tensor.h"

#include <algorithm>
#include <cstring>
#include <ostream>

#include "base/text.h"
#include "compile/runtime/element_codec.h"
#include "tensorgrad/train/inputs.h"
#include "trace/trace.h"
#include "train/device_value.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

HostTensor HostTensor::from(const Shape& shape, const HostView& values, Loc loc) {
  if (numel(shape) != static_cast<std::int64_t>(values.count)) {
    throw ShapeError("host tensor: " + to_string(shape) + " has " + std::to_string(numel(shape)) +
                         " elements, got " + std::to_string(values.count),
                     loc);
  }
  const auto* first = static_cast<const std::byte*>(values.data);
  return {values.dtype, shape, {first, first + values.count * element_bytes(values.dtype)}};
}

HostTensor HostTensor::from(const Shape& shape, const std::vector<bool>& values, Loc loc) {
  return from(shape, FeedValue(values), loc);
}

std::vector<HostTensor> HostTensor::unbind(int axis, Loc loc) const {
  const auto along = static_cast<std::size_t>(resolve_axis(axis, shape, "unbind", loc));
  std::size_t outer = 1, inner = element_bytes(dtype);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d != along) (d < along ? outer : inner) *= static_cast<std::size_t>(shape[d]);
  }
  Shape rest = shape;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(along));
  std::vector<HostTensor> parts(static_cast<std::size_t>(shape[along]), {dtype, rest, {}});
  auto from = bytes.begin();
  for (std::size_t o = 0; o < outer; ++o) {
    for (HostTensor& part : parts) {
      part.bytes.insert(part.bytes.end(), from, from + static_cast<std::ptrdiff_t>(inner));
      from += static_cast<std::ptrdiff_t>(inner);
    }
  }
  return parts;
}

namespace {

template <class T>
std::vector<T> elements(const HostTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

[[noreturn]] void throw_dtype(const char* what, const char* expected, DType dtype) {
  throw DtypeError(std::string(what) + ": expected " + expected + ", got " +
                   std::string(to_string(dtype)));
}

}  // namespace

std::vector<float> HostTensor::floats() const {
  if (dtype == DType::kF32) return elements<float>(*this);
  if (dtype != DType::kF16) throw_dtype("floats", "f32 or f16", dtype);
  const std::size_t count = bytes.size() / element_bytes(dtype);
  const std::vector<std::uint32_t> words = from_stored(bytes, count, dtype);
  std::vector<float> values(count);
  std::memcpy(values.data(), words.data(), count * sizeof(float));
  return values;
}

std::span<const float> HostTensor::float_span() const& {
  if (dtype != DType::kF32) throw_dtype("float_span", "f32", dtype);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::vector<std::int32_t> HostTensor::ints() const {
  if (dtype == DType::kF32 || dtype == DType::kF16) throw_dtype("ints", "i32, u32 or bool", dtype);
  return elements<std::int32_t>(*this);
}

std::vector<std::uint32_t> HostTensor::uints() const {
  if (dtype != DType::kU32) throw_dtype("uints", "u32", dtype);
  return elements<std::uint32_t>(*this);
}

std::vector<bool> HostTensor::bools() const {
  if (dtype != DType::kBool) throw_dtype("bools", "bool", dtype);
  const std::vector<std::uint32_t> words = elements<std::uint32_t>(*this);
  std::vector<bool> values;
  for (const std::uint32_t word : words) values.push_back(word != 0);
  return values;
}

namespace {

template <class Out>
Out& write(Out& out, const HostTensor& tensor) {
  constexpr std::size_t kShownValues = 32;
  out << to_string(tensor.dtype) << to_string(tensor.shape) << " {";
  const auto write = [&](const auto& values) {
    for (std::size_t i = 0; i < std::min(values.size(), kShownValues); ++i)
      out << (i == 0 ? "" : ", ") << values[i];
    out << (values.size() > kShownValues ? ", ...}" : "}");
  };
  if (tensor.dtype == DType::kF32 || tensor.dtype == DType::kF16) {
    write(tensor.floats());
  } else if (tensor.dtype == DType::kU32) {
    write(tensor.uints());
  } else {
    write(tensor.ints());
  }
  return out;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const HostTensor& tensor) { return write(out, tensor); }

std::string text_of(const HostTensor& tensor) {
  TextBuilder text;
  return write(text, tensor).str();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
