// SPDX-License-Identifier: MIT
// Symbolic tensors: values in a function that is being traced.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <type_traits>
#include <vector>

#include "tensorgrad/error.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Source location of a call. Ops take that of their caller as the last argument (pointwise ops:
/// with Operand), so that errors can report it.
using Loc = SourceLocation;

class Trace;
class Parameter;
class Tensor;

namespace detail {
std::ostream& write(std::ostream& out, const Tensor& tensor);
}

/// Range of an axis, as in Python: from `start` up to but not including `stop`, in steps. Negative
/// bounds count from the end, and bounds beyond the axis are clamped to it.
struct Slice {
  std::optional<std::int64_t> start = std::nullopt;  ///< By default, 0.
  std::optional<std::int64_t> stop = std::nullopt;   ///< By default, the size of the axis.
  std::int64_t step = 1;  ///< At least 1. To reverse an axis, use flip().
};

/// Entry of Tensor::operator[]: a number, a Slice, kAll, kEllipsis or kNewAxis. Records the line
/// where it was created.
class Index {
 public:
  /// Kind of an index.
  enum class Kind {
    kElement,   ///< Selects one element of an axis, which the result lacks.
    kSlice,     ///< Selects a range of an axis.
    kEllipsis,  ///< Keeps all axes that the other indices leave. At most once.
    kNewAxis    ///< Adds an axis of size 1.
  };

  /// Selects one element of an axis, which the result lacks. A negative number counts from the end.
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Index(T at, Loc loc = Loc::current())  // NOLINT(google-explicit-constructor)
      : kind(Kind::kElement), element(static_cast<std::int64_t>(at)), location(loc) {}

  /// Selects a range of an axis.
  Index(Slice range, Loc loc = Loc::current())  // NOLINT(google-explicit-constructor)
      : kind(Kind::kSlice), slice(range), location(loc) {}

  /// Keeps axes or adds one: kEllipsis or kNewAxis.
  Index(Kind other, Loc loc = Loc::current())  // NOLINT(google-explicit-constructor)
      : kind(other), location(loc) {}

  Kind kind;                 ///< Kind of the index; determines which other field is used.
  std::int64_t element = 0;  ///< Number of the element, for kElement; negative: from the end.
  Slice slice;               ///< Range, for kSlice.
  SourceLocation location;   ///< Line where the index was created.
};

/// Indices of Tensor::operator[]: a whole axis, all remaining axes, a new axis of size 1.
inline constexpr Slice kAll = {};
inline constexpr Index::Kind kEllipsis = Index::Kind::kEllipsis;
inline constexpr Index::Kind kNewAxis = Index::Kind::kNewAxis;

/// Value in the function being traced. It has a shape and an element type, but no elements until
/// the compiled program runs. A tensor is a cheap handle and is valid until its trace ends. Throws
/// UserError if it is used outside its trace. Ops are free functions (ops.h).
class Tensor {
 public:
  Tensor() = default;

  /// Wraps value `id` of a trace. Ops call this; programs get tensors from ops.
  Tensor(Trace* trace, std::uint64_t serial, std::int32_t id)
      : trace_(trace), serial_(serial), id_(id) {}

  /// Returns the sizes of the axes, outermost first.
  [[nodiscard]] Shape shape(Loc loc = Loc::current()) const;

  /// Returns the element type.
  [[nodiscard]] DType dtype(Loc loc = Loc::current()) const;

  /// Returns the number of axes.
  [[nodiscard]] int rank(Loc loc = Loc::current()) const {
    return static_cast<int>(shape(loc).size());
  }

  /// Returns the size of an axis. A negative axis counts from the end. Throws ShapeError if the
  /// axis is out of range.
  [[nodiscard]] std::int64_t size(int axis, Loc loc = Loc::current()) const;

  /// Returns a part of the tensor, like basic indexing of NumPy. Axes without an index are kept.
  /// ```cpp
  /// x[{tg::kEllipsis, -1}]                   // the last element of the last axis
  /// x[{tg::Slice{1, -1}, tg::kAll, 0}]       // x[1:-1, :, 0]
  /// x[{tg::Slice{.step = 2}, tg::kNewAxis}]  // x[::2, None]
  /// ```
  /// Throws ShapeError if there are more indices than axes or several kEllipsis, an element is out
  /// of range, or a slice is empty. For an index that is a tensor, see index_select() and gather().
  Tensor operator[](std::initializer_list<Index> indices) const;
  Tensor operator[](const Index& index) const { return (*this)[{index}]; }

  /// Returns the index of the value in its trace, or -1 for a default-constructed tensor.
  [[nodiscard]] std::int32_t id() const { return id_; }

  /// Returns the trace, or null for a default-constructed tensor.
  [[nodiscard]] Trace* trace() const { return trace_; }

  /// Returns the serial number of the trace. Unlike the address, it is never reused.
  [[nodiscard]] std::uint64_t serial() const { return serial_; }

  /// Writes element type and shape, for example "f32[64,10]". A tensor has no elements while its
  /// function is traced; return or capture() it to see them.
  friend std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
    return detail::write(out, tensor);
  }

 private:
  Trace* trace_ = nullptr;
  std::uint64_t serial_ = 0;
  std::int32_t id_ = -1;
};

/// Operand of a pointwise op: a tensor, a parameter or a number. A number takes the element type of
/// the tensor operands, or f32 if there are none. The op throws DtypeError if that type is an
/// integer or bool and cannot represent the number. An operand records the line where it was
/// created.
class Operand {
 public:
  /// Converts a tensor, a parameter or a number. Throws UserError if the model being traced does
  /// not have the parameter.
  Operand(Tensor value, Loc loc = Loc::current())  // NOLINT(google-explicit-constructor)
      : tensor(value), location(loc) {}
  Operand(const Parameter& parameter, Loc loc = Loc::current());  // NOLINT(*-explicit-constructor)
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T value, Loc loc = Loc::current())  // NOLINT(google-explicit-constructor)
      : number(static_cast<double>(value)), is_number(true), location(loc) {}

  Tensor tensor;            ///< The tensor if `is_number` is false.
  double number = 0;        ///< The number if `is_number` is true.
  bool is_number = false;   ///< True if the operand is a number.
  SourceLocation location;  ///< Line where the operand was created.
};

/// Pointwise arithmetic: add(), sub(), mul(), div() and neg().
Tensor operator+(Operand a, Operand b);
Tensor operator-(Operand a, Operand b);
Tensor operator*(Operand a, Operand b);
Tensor operator/(Operand a, Operand b);
Tensor operator-(Operand a);

/// Pointwise comparison: lt(), le(), gt(), ge(), eq() and ne(). Returns a boolean tensor.
Tensor operator<(Operand a, Operand b);
Tensor operator<=(Operand a, Operand b);
Tensor operator>(Operand a, Operand b);
Tensor operator>=(Operand a, Operand b);
Tensor operator==(Operand a, Operand b);
Tensor operator!=(Operand a, Operand b);

/// Pointwise logic: logical_and(), logical_or() and logical_not(). There is no short-circuit.
Tensor operator&&(Operand a, Operand b);
Tensor operator||(Operand a, Operand b);
Tensor operator!(Operand a);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
