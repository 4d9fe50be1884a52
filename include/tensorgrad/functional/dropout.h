// SPDX-License-Identifier: MIT
// Dropout, and the training flag on which it depends.
#pragma once

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns true if ops are traced for training, like `module.training` in PyTorch. It is true in
/// the loss of compile(), and in attach() and compile_function() only if FunctionOptions::training
/// is set. TrainingMode overrides it. Dropout and nn::BatchNorm depend on it. Throws UserError
/// outside a traced function.
bool is_training(Loc loc = Loc::current());

/// RAII guard that sets the training flag for ops traced in its scope, for example to run part of a
/// model in evaluation mode.
/// ```cpp
/// {
///   const tg::TrainingMode frozen(false);
///   features = net.backbone(x);
/// }
/// ```
class TrainingMode {
 public:
  /// Sets the flag until the end of the scope. Throws UserError outside a traced function.
  explicit TrainingMode(bool training, Loc loc = Loc::current());
  TrainingMode(const TrainingMode&) = delete;
  TrainingMode& operator=(const TrainingMode&) = delete;
  ~TrainingMode();

 private:
  Trace* trace_;
  bool before_;
};

/// Zeroes each element with probability `p` and scales the others by 1 / (1 - p). Every step draws
/// a new pattern. In evaluation mode, returns `x`. If p = 1, the result and its gradient are 0
/// during training. Throws UserError if `p` is not in [0, 1].
Tensor dropout(Tensor x, double p, Loc loc = Loc::current());

/// Like dropout(), but zeroes whole channels. `x` is [N, C, L] for dropout1d() and [N, C, H, W] for
/// dropout2d(). Throws ShapeError if it has another number of axes.
Tensor dropout1d(Tensor x, double p, Loc loc = Loc::current());
Tensor dropout2d(Tensor x, double p, Loc loc = Loc::current());

/// Like dropout(), but keeps mean 0 and variance 1, for networks with selu() (Klambauer et al.
/// 2017). A dropped element becomes the limit of selu() at -infinity, and then all elements are
/// rescaled.
Tensor alpha_dropout(Tensor x, double p, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
