// SPDX-License-Identifier: MIT
// What several composites are made of.
#pragma once

#include <initializer_list>
#include <vector>

#include "tensorgrad/ops/autocast.h"
#include "tensorgrad/ops/pointwise.h"
#include "tensorgrad/ops/reduction.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Composites compute in f32: makes f32 of those that are f16.
void widen(const std::vector<Tensor*>& tensors);
// Throws ShapeError where an op's operand of that name has another shape.
void demand_shape(const char* op, const char* name, const Tensor& given, const Shape& expected,
                  const SourceLocation& location);
// Makes the tensors that are f16 f32, and what a composite makes of them f16 again, unless one was
// f32. So a composite rounds once, whatever it is made of.
class Narrowing {
 public:
  explicit Narrowing(Tensor& x) : Narrowing(std::vector<Tensor*>{&x}) {}
  explicit Narrowing(const std::vector<Tensor*>& tensors);
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
