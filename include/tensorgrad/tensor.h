// SPDX-License-Identifier: MIT
// Tensor: a value in the function that is being traced. It has a type, and no elements yet.
#pragma once

#include <concepts>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <vector>

#include "tensorgrad/error.h"
#include "tensorgrad/types.h"

namespace tensorgrad {

using Loc = std::source_location;

class Trace;
class Parameter;

// A cheap handle, good until the trace that made it ends; ops are free functions (ops.h). Using one
// outside of its trace throws UserError.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Trace* trace, std::uint64_t serial, std::int32_t id)
      : trace_(trace), serial_(serial), id_(id) {}

  [[nodiscard]] Shape shape(Loc loc = Loc::current()) const;
  [[nodiscard]] DType dtype(Loc loc = Loc::current()) const;
  // Number of axes.
  [[nodiscard]] int rank(Loc loc = Loc::current()) const {
    return static_cast<int>(shape(loc).size());
  }
  // Size of an axis; negative ones count from the end.
  [[nodiscard]] std::int64_t size(int axis, Loc loc = Loc::current()) const;

  [[nodiscard]] std::int32_t id() const { return id_; }
  [[nodiscard]] Trace* trace() const { return trace_; }
  [[nodiscard]] std::uint64_t serial() const { return serial_; }

 private:
  Trace* trace_ = nullptr;
  std::uint64_t serial_ = 0;
  std::int32_t id_ = -1;
};

// An operand of an operator or of a two-sided op: a tensor, a parameter, or a number, which takes
// the other side's element type. It notes the line on which it is written.
class Operand {
 public:
  Operand(Tensor value, Loc loc = Loc::current())  // NOLINT(google-explicit-constructor)
      : tensor(value), site(loc) {}
  Operand(const Parameter& parameter, Loc loc = Loc::current());  // NOLINT(*-explicit-constructor)
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T value, Loc loc = Loc::current())  // NOLINT(google-explicit-constructor)
      : number(static_cast<double>(value)), is_number(true), site(loc) {}

  Tensor tensor;
  double number = 0;
  bool is_number = false;
  Site site;
};

Tensor operator+(Operand a, Operand b);
Tensor operator-(Operand a, Operand b);
Tensor operator*(Operand a, Operand b);
Tensor operator/(Operand a, Operand b);
Tensor operator-(Operand a);
// Comparisons give bool.
Tensor operator<(Operand a, Operand b);
Tensor operator<=(Operand a, Operand b);
Tensor operator>(Operand a, Operand b);
Tensor operator>=(Operand a, Operand b);
Tensor operator==(Operand a, Operand b);
Tensor operator!=(Operand a, Operand b);
Tensor operator&&(Operand a, Operand b);
Tensor operator||(Operand a, Operand b);
Tensor operator!(Operand a);

}  // namespace tensorgrad
