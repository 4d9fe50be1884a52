// SPDX-License-Identifier: MIT
// What several composites are made of.
#pragma once

#include <initializer_list>

#include "tensorgrad/ops/autocast.h"
#include "tensorgrad/ops/pointwise.h"
#include "tensorgrad/ops/reduction.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Composites compute in f32: makes f32 of those that are f16.
void widen(std::initializer_list<Tensor*> tensors);
// Throws ShapeError where an op's operand of that name has another shape.
void demand_shape(const char* op, const char* name, const Tensor& given, const Shape& expected,
                  const SourceLocation& location);
// Makes `x` f32 where it is f16, and what a composite makes of it f16 again.
class Narrowing {
 public:
  explicit Narrowing(Tensor& x) : half_(x.dtype() == DType::kF16) { widen({&x}); }
  Tensor operator()(Tensor result) const { return half_ ? cast(result, DType::kF16) : result; }

 private:
  bool half_;
};

// Is what is traced now in mixed precision?
bool autocasts();
// A product in mixed precision, written with ops of f32: makes the operands f32, in mixed precision
// after rounding them to f16; the result f16 there, or where `half` says so. While it lives, what
// is traced is not in mixed precision.
class MixedProduct {
 public:
  MixedProduct(std::initializer_list<Tensor*> operands, bool half);
  Tensor operator()(Tensor result) const;
  [[nodiscard]] bool half() const { return half_; }  // is the result f16?

 private:
  bool half_, rounds_;
  Autocast within_;
};
// In mixed precision, where a tensor of one of f16 and f32 is expected and the other is given: the
// cast, at `site`. Else `x`.
Tensor of_type(Tensor x, DType dtype, const SourceLocation& location);

// The largest element, as a number to subtract before exp: not differentiated, and finite. Keeps
// the axes.
Tensor shift_of(Tensor x, Axes axes, Loc loc);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
