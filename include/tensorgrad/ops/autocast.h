// SPDX-License-Identifier: MIT
// Mixed precision within a traced function; CompileOptions::mixed_precision is it for all of one.
#pragma once

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// While it lives, the products of the function being traced (matmul, linear, einsum, convolutions,
// scaled_dot_product_attention, and the layers made of them) take their f32 operands rounded to
// f16, add up in f32 and give f16; or with `enabled` false they do not. (torch.autocast.) All else
// goes by its operands: what is made of f16 alone is f16, beside f32 it is f32, and losses are f32.
//   { const Autocast full(false); score = matmul(a, cast(b, f32)); }
// Scopes may lie within each other, and end in the reverse order. Throws UserError outside of a
// traced function.
class Autocast {
 public:
  explicit Autocast(bool enabled, Loc loc = Loc::current());
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast();

 private:
  Trace* trace_;
  bool before_;
};

}  // namespace tensorgrad
