// SPDX-License-Identifier: MIT
// Tensors in host memory, as passed to and returned by programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct HostTensor;

/// Non-owning view of row-major elements in host memory. Its dtype must be that of the input it is
/// passed to, except that an f16 input also accepts f32 and rounds it. A view of a HostTensor has a
/// shape, which must equal the input's. Any other view has only a count, which must equal the
/// input's number of elements. The memory must stay valid until the call that takes the view
/// returns.
struct HostView {
  /// Views a vector, a span or a HostTensor.
  HostView(const std::vector<float>& v) : HostView(f32, v.data(), v.size()) {}          // NOLINT
  HostView(const std::vector<std::int32_t>& v) : HostView(i32, v.data(), v.size()) {}   // NOLINT
  HostView(const std::vector<std::uint32_t>& v) : HostView(u32, v.data(), v.size()) {}  // NOLINT
  HostView(std::span<const float> v) : HostView(f32, v.data(), v.size()) {}             // NOLINT
  HostView(std::span<const std::int32_t> v) : HostView(i32, v.data(), v.size()) {}      // NOLINT
  HostView(std::span<const std::uint32_t> v) : HostView(u32, v.data(), v.size()) {}     // NOLINT
  HostView(const HostTensor& tensor);                                                   // NOLINT

  /// Views `n` elements of type `t` at `d`.
  HostView(DType t, const void* d, std::size_t n) : dtype(t), data(d), count(n) {}

  DType dtype;
  const void* data;
  std::size_t count;             ///< Number of elements.
  const Shape* shape = nullptr;  ///< Shape of the viewed HostTensor; null for other sources.
};

/// Tensor in host memory that owns its elements.
struct HostTensor {
  DType dtype = f32;
  Shape shape;
  std::vector<std::byte> bytes;  ///< Row-major elements of element_bytes() each.

  /// Returns a tensor with a copy of `values`. Throws ShapeError if their number does not match
  /// `shape`.
  static HostTensor from(const Shape& shape, const HostView& values, Loc loc = Loc::current());

  /// Returns the slices along `axis` as copies, each without that axis (`torch.unbind`). For
  /// example, `unbind(1)` splits attention weights [1, H, T, T] into H tensors [1, T, T]. Throws
  /// ShapeError if the axis is out of range.
  [[nodiscard]] std::vector<HostTensor> unbind(int axis = 0, Loc loc = Loc::current()) const;

  /// Returns the elements of an f32 tensor, or those of an f16 tensor converted to f32. Throws
  /// DtypeError for any other dtype.
  [[nodiscard]] std::vector<float> floats() const;

  /// Returns the elements of an i32, u32 or boolean tensor. A u32 value of 2^31 or more wraps to a
  /// negative one; booleans are 0 or 1. Throws DtypeError if the tensor is f32 or f16.
  [[nodiscard]] std::vector<std::int32_t> ints() const;

  /// Returns a view of the elements of an f32 tensor without copying them. Throws DtypeError if the
  /// tensor is not f32.
  [[nodiscard]] std::span<const float> float_span() const;
};

/// Host tensors by name, such as the outputs of a function or the fields of a sample.
using NamedTensors = std::map<std::string, HostTensor>;

}  // namespace tensorgrad::inline TENSORGRAD_ABI
