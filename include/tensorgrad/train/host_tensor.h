// SPDX-License-Identifier: MIT
// Tensors in host memory, as passed to and returned by programs.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct HostTensor;

namespace detail {

// Contiguous elements in host memory, such as a vector, an array or a span.
template <class T>
concept HostElements =
    std::ranges::contiguous_range<const T&> && std::ranges::sized_range<const T&> &&
    std::is_arithmetic_v<std::ranges::range_value_t<const T&>>;

// Types that convert to a HostView, but own the elements: a view of a temporary would dangle.
template <class T>
concept OwnsElements =
    (HostElements<std::remove_cvref_t<T>> && !std::ranges::borrowed_range<std::remove_cvref_t<T>> &&
     !std::is_array_v<std::remove_cvref_t<T>>) ||
    std::same_as<std::remove_cvref_t<T>, HostTensor>;

// Element type of a C++ type. Does not compile if there is none.
template <class T>
constexpr DType dtype_of() {
  static_assert(!std::is_same_v<T, double>, "expected float elements, got double: convert them");
  static_assert(
      !std::is_integral_v<T> || std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::uint32_t>,
      "expected std::int32_t or std::uint32_t elements, got another integer type: "
      "convert them; booleans are passed as std::vector<bool>");
  static_assert(
      !std::is_floating_point_v<T> || std::is_same_v<T, float> || std::is_same_v<T, double>,
      "expected float elements, got another floating-point type: convert them");
  return std::is_integral_v<T> ? (std::is_signed_v<T> ? i32 : u32) : f32;
}

}  // namespace detail

/// Non-owning view of row-major elements in host memory. Its dtype must be that of the input it is
/// passed to, except that an f16 input also accepts f32 and rounds it. A view of a HostTensor has a
/// shape, which must equal the input's. Any other view has only a count, which must equal the
/// input's number of elements. The memory must stay valid as long as the view is used. Compilers
/// that know `lifetimebound` warn about views of temporaries.
struct HostView {
  /// Views contiguous elements: a vector, an array or a span of float, `std::int32_t` or
  /// `std::uint32_t`. Other element types do not compile.
  template <detail::HostElements Values>
    requires detail::OwnsElements<Values>
  HostView(const Values& values TENSORGRAD_LIFETIMEBOUND)  // NOLINT(google-explicit-constructor)
      : HostView(detail::dtype_of<std::ranges::range_value_t<const Values&>>(),
                 std::ranges::data(values), std::ranges::size(values)) {}
  template <detail::HostElements Values>
  HostView(const Values& values)  // NOLINT(google-explicit-constructor)
      : HostView(detail::dtype_of<std::ranges::range_value_t<const Values&>>(),
                 std::ranges::data(values), std::ranges::size(values)) {}

  /// Views the elements of a HostTensor.
  HostView(const HostTensor& tensor TENSORGRAD_LIFETIMEBOUND);  // NOLINT(*-explicit-constructor)

  /// Views `n` elements of type `t` at `d`.
  HostView(DType t, const void* d, std::size_t n) : dtype(t), data(d), count(n) {}

  DType dtype;                   ///< Type of the elements.
  const void* data;              ///< The first element.
  std::size_t count;             ///< Number of elements.
  const Shape* shape = nullptr;  ///< Shape of the viewed HostTensor; null for other sources.
};

/// Tensor in host memory that owns its elements.
struct HostTensor {
  DType dtype = f32;             ///< Type of the elements.
  Shape shape;                   ///< Empty for a scalar.
  std::vector<std::byte> bytes;  ///< Row-major elements of element_bytes(dtype) each.

  /// Returns a tensor with a copy of `values`. Throws ShapeError if their number does not match
  /// `shape`.
  static HostTensor from(const Shape& shape, const HostView& values, Loc loc = Loc::current());

  /// Returns a boolean tensor with a copy of `values`. Throws the errors of from() of a view.
  static HostTensor from(const Shape& shape, const std::vector<bool>& values,
                         Loc loc = Loc::current());

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

  /// Returns the elements of a u32 tensor. Throws DtypeError for any other dtype.
  [[nodiscard]] std::vector<std::uint32_t> uints() const;

  /// Returns the elements of a boolean tensor. Throws DtypeError for any other dtype.
  [[nodiscard]] std::vector<bool> bools() const;

  /// Returns a view of the elements of an f32 tensor without copying them. Does not compile for a
  /// temporary, whose elements the view would outlive. Throws DtypeError if the tensor is not f32.
  [[nodiscard]] std::span<const float> float_span() const& TENSORGRAD_LIFETIMEBOUND;
  std::span<const float> float_span() const&& = delete;
};

/// Writes a tensor as text, for example "f32[2,3] {1, 2, 3, 4, 5, 6}". Of more than 32 elements,
/// writes the first 32 and "...".
std::ostream& operator<<(std::ostream& out, const HostTensor& tensor);

/// Host tensors by name, such as the outputs of a function or the fields of a sample.
using NamedTensors = std::map<std::string, HostTensor>;

}  // namespace tensorgrad::inline TENSORGRAD_ABI
