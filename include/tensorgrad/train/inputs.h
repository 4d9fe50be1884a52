// SPDX-License-Identifier: MIT
// What goes into a compiled function and comes out of it: elements on the host, and the inputs'
// declarations.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

struct HostTensor;
class DeviceTensor;
namespace detail {
struct DeviceValue;
}

// Elements on the host, row-major, with the type they have on the device (an input of f16 takes f32
// too, and rounds it). Refers to the caller's memory. Those of a HostTensor have a shape, which
// must be the input's; the others are as many as the input has.
struct HostView {
  HostView(const std::vector<float>& v) : HostView(f32, v.data(), v.size()) {}          // NOLINT
  HostView(const std::vector<std::int32_t>& v) : HostView(i32, v.data(), v.size()) {}   // NOLINT
  HostView(const std::vector<std::uint32_t>& v) : HostView(u32, v.data(), v.size()) {}  // NOLINT
  HostView(std::span<const float> v) : HostView(f32, v.data(), v.size()) {}             // NOLINT
  HostView(std::span<const std::int32_t> v) : HostView(i32, v.data(), v.size()) {}      // NOLINT
  HostView(std::span<const std::uint32_t> v) : HostView(u32, v.data(), v.size()) {}     // NOLINT
  HostView(const HostTensor& tensor);                                                   // NOLINT
  HostView(DType t, const void* d, std::size_t n) : dtype(t), data(d), count(n) {}

  DType dtype;
  const void* data;
  std::size_t count;
  const Shape* shape = nullptr;
};

// Elements on the host with their shape, as they come from a device.
struct HostTensor {
  DType dtype = f32;
  Shape shape;
  std::vector<std::byte> bytes;

  // A copy of the elements. Throws ShapeError where the shape has not as many.
  static HostTensor of(const Shape& shape, const HostView& values, Loc loc = Loc::current());

  // Copies of the parts along an axis, without it: a captured [1,H,T,T] as H heads of [1,T,T] by
  // unbind(1). Throws ShapeError where there is no such axis.
  [[nodiscard]] std::vector<HostTensor> unbind(int axis = 0, Loc loc = Loc::current()) const;

  // The elements, those of f16 as f32; throws DtypeError where the type is another.
  [[nodiscard]] std::vector<float> floats() const;
  [[nodiscard]] std::vector<std::int32_t> ints() const;
  // The elements of f32 where they lie, without a copy; throws DtypeError where the type is
  // another.
  [[nodiscard]] std::span<const float> float_span() const;
};

// A size that every call gives anew by how many elements it brings: {"x", {kOpen, 28, 28}}. Of
// inputs of functions that do not train; at most one in an input, and the same number for all in a
// call.
inline constexpr std::int64_t kOpen = -1;

// An input's declaration.
struct InputSpec {
  InputSpec(std::string n, Shape s, DType t = f32)
      : name(std::move(n)), shape(std::move(s)), dtype(t) {}
  std::string name;
  Shape shape;
  DType dtype;
};

// A name that is looked up (an input's, an objective's), with the line on which it is written.
struct NameAt {
  NameAt(const char* n, Loc loc = Loc::current()) : name(n), site(loc) {}             // NOLINT
  NameAt(std::string n, Loc loc = Loc::current()) : name(std::move(n)), site(loc) {}  // NOLINT
  std::string name;
  Site site;
};

// The inputs of the function that is traced, by name.
class Inputs {
 public:
  Inputs() = default;
  explicit Inputs(std::map<std::string, Tensor> tensors) : tensors_(std::move(tensors)) {}
  // Throws UserError with the names there are.
  Tensor operator[](const NameAt& name) const;

 private:
  std::map<std::string, Tensor> tensors_;
};

// What an input is given: elements on the host, or a tensor that lies on the device, which is kept
// alive. Whether indices in the latter are within range is not checked.
struct FeedValue : HostView {
  template <class T>
    requires(std::convertible_to<const T&, HostView> && !std::derived_from<T, FeedValue>)
  FeedValue(const T& values) : HostView(values) {}  // NOLINT
  FeedValue(DType t, const void* d, std::size_t n) : HostView(t, d, n) {}
  FeedValue(const DeviceTensor& tensor);  // NOLINT

  std::shared_ptr<const detail::DeviceValue> on_device = {};
};
using Feed = std::map<std::string, FeedValue>;
using Outputs = std::map<std::string, HostTensor>;

}  // namespace tensorgrad
