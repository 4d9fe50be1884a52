// SPDX-License-Identifier: MIT
// Helpers for composites, which are ops made of other ops.
#pragma once

#include <initializer_list>
#include <vector>

#include "tensorgrad/ops/autocast.h"
#include "tensorgrad/ops/pointwise.h"
#include "tensorgrad/ops/reduction.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Casts f16 tensors to f32, in which composites compute.
void upcast(const std::vector<Tensor*>& tensors);
// Throws ShapeError if the operand `name` of an op does not have the expected shape.
void demand_shape(const char* op, const char* name, const Tensor& given, const Shape& expected,
                  const SourceLocation& location);
// Casts f16 tensors to f32, and the result of a composite back to f16 unless one of the tensors was
// f32. A composite thus rounds once, however many ops it consists of.
class Upcast {
 public:
  explicit Upcast(Tensor& x) : Upcast(std::vector<Tensor*>{&x}) {}
  explicit Upcast(const std::vector<Tensor*>& tensors);
  Tensor operator()(Tensor result) const { return half_ ? cast(result, DType::kF16) : result; }

 private:
  bool half_;
};

// True if the current trace is in mixed precision.
bool autocasts();
// Computes a product in mixed precision with f32 ops. Casts the operands to f32; in mixed
// precision, rounds them to f16 first. The result is f16 in mixed precision or if `half` is set.
// Disables mixed precision for ops traced during its lifetime.
class MixedProduct {
 public:
  MixedProduct(std::initializer_list<Tensor*> operands, bool half);
  Tensor operator()(Tensor result) const;
  [[nodiscard]] bool half() const { return half_; }  // true if the result is f16

 private:
  bool half_, rounds_;
  Autocast within_;
};
// In mixed precision, casts `x` between f16 and f32 to `dtype`, at `location`. Otherwise returns
// `x`.
Tensor cast_if_autocast(Tensor x, DType dtype, const SourceLocation& location);

// Returns the maximum over `axes` as a number to subtract before exp. It is detached from the
// gradient and is 0 if the maximum is not finite. Keeps the axes with size 1.
Tensor detached_max(Tensor x, Axes axes, Loc loc);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
