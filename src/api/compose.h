// SPDX-License-Identifier: MIT
// What several composites are made of.
#pragma once

#include <initializer_list>

#include "tensorgrad/pointwise.h"
#include "tensorgrad/shaping.h"

namespace tensorgrad {

// Composites compute in f32: makes f32 of those that are f16.
void widen(std::initializer_list<Tensor*> tensors);
// Makes `x` f32 where it is f16, and what a composite makes of it f16 again.
class Narrowing {
 public:
  explicit Narrowing(Tensor& x) : half_(x.dtype() == DType::kF16) { widen({&x}); }
  Tensor operator()(Tensor result) const { return half_ ? cast(result, DType::kF16) : result; }

 private:
  bool half_;
};

// The largest element, as a number to subtract before exp: not differentiated, and finite. Keeps
// the axes.
Tensor shift_of(Tensor x, Axes axes, Loc loc);

}  // namespace tensorgrad
