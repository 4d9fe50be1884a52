// SPDX-License-Identifier: MIT
// Mixed precision for a part of a traced function.
#pragma once

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Scope guard that switches mixed precision on or off for the ops traced in its scope, like
/// `torch.autocast`. To switch it on for a whole function, set CompileOptions::mixed_precision.
///
/// In mixed precision, products round their f32 operands to f16, accumulate in f32 and return f16.
/// Products are matmul(), linear(), einsum(), convolutions, scaled_dot_product_attention(), and the
/// layers built on them. All other ops depend only on the types of their operands: they return f16
/// if all real operands are f16, and f32 if one of them is f32. Losses are f32.
/// ```cpp
/// { const Autocast full(false); score = matmul(a, cast(b, f32)); }
/// ```
/// Scopes can be nested, and end in reverse order.
class Autocast {
 public:
  /// Switches mixed precision on, or off if `enabled` is false, until the guard is destroyed.
  /// Throws UserError outside a traced function.
  explicit Autocast(bool enabled, Loc loc = Loc::current());
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast();

 private:
  Trace* trace_;
  bool before_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
