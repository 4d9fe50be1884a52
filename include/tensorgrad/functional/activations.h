// SPDX-License-Identifier: MIT
// Activation functions, as in torch.nn.functional. They accept f32 and f16 tensors and return the
// dtype of `x`; f16 is computed in f32 and rounded at the end. They throw DtypeError for other
// dtypes, and ShapeError if an axis is out of range.
#pragma once

#include <cstdint>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns exp(x) / sum(exp(x)) along an axis, computed stably. If all elements of a row are -inf,
/// the row of the result is NaN, as in PyTorch.
Tensor softmax(Tensor x, int axis = -1, Loc loc = Loc::current());

/// Returns softmax() over the elements whose `mask` is true, and 0 for the others. `mask` is a
/// boolean tensor that broadcasts to `x`. A row of the result is 0 if its mask is false everywhere,
/// or if all selected elements are -inf.
Tensor masked_softmax(Tensor x, Tensor mask, int axis = -1, Loc loc = Loc::current());

/// Returns softmax() over each segment of an axis: over the elements whose entry in the i32 or u32
/// vector `segments` is the same. Segments are numbered from 0 to `count` - 1, in any order, for
/// example the target nodes of the edges of a graph. Elements of a segment out of range are 0.
/// Throws ShapeError if the sizes of `segments` and of the axis differ.
Tensor segment_softmax(Tensor x, Tensor segments, std::int64_t count, int axis = 0,
                       Loc loc = Loc::current());

/// Returns log(softmax(x)) along an axis, computed stably. An element of -inf stays -inf. If all
/// elements of a row are -inf, the row of the result is NaN.
Tensor log_softmax(Tensor x, int axis = -1, Loc loc = Loc::current());

/// Returns softmax((x + noise) / tau) with Gumbel noise: a differentiable sample of the
/// distribution softmax(x) (Jang, Gu and Poole 2017). If `hard`, returns a one-hot sample with the
/// gradient of the soft one. Throws UserError if `tau` is not positive.
Tensor gumbel_softmax(Tensor x, double tau = 1, bool hard = false, int axis = -1,
                      Loc loc = Loc::current());

/// Formula of gelu(), like the `approximate` argument of PyTorch.
enum class GeluApproximation {
  kNone,  ///< The exact formula.
  kTanh   ///< The approximation with tanh.
};

/// Returns x * Phi(x), with the standard normal distribution function Phi (Hendrycks and Gimpel
/// 2016). The tanh approximation of Phi(x) is (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
Tensor gelu(Tensor x, GeluApproximation approximation = GeluApproximation::kNone,
            Loc loc = Loc::current());

/// Returns x * sigmoid(x).
Tensor silu(Tensor x, Loc loc = Loc::current());

/// Returns `x` if x > 0, else slope * x. The gradient at 0 is `slope`.
Tensor leaky_relu(Tensor x, double slope = 0.01, Loc loc = Loc::current());

/// Returns leaky_relu() with a learned slope (He et al. 2015). `weight` is [1], or [C] for the C
/// channels of axis 1. Throws ShapeError if it has another shape.
Tensor prelu(Tensor x, Tensor weight, Loc loc = Loc::current());

/// Returns `x` if x > 0, else alpha * (e^x - 1) (Clevert, Unterthiner and Hochreiter 2016). The
/// gradient at 0 is `alpha`.
Tensor elu(Tensor x, double alpha = 1, Loc loc = Loc::current());

/// Returns `x` if x > 0, else alpha * (e^(x / alpha) - 1). Throws UserError if `alpha` is 0.
Tensor celu(Tensor x, double alpha = 1, Loc loc = Loc::current());

/// Returns elu() with a scale and an alpha that keep mean 0 and variance 1 (Klambauer et al. 2017).
Tensor selu(Tensor x, Loc loc = Loc::current());

/// Returns `x` clamped to [lo, hi]. The gradient at the bounds is 0, unlike that of clamp(), which
/// is 1. NaN stays NaN. Throws UserError if lo > hi.
Tensor hardtanh(Tensor x, double lo = -1, double hi = 1, Loc loc = Loc::current());

/// Returns hardtanh(x, 0, 6).
Tensor relu6(Tensor x, Loc loc = Loc::current());

/// Returns hardtanh(x, -3, 3) / 6 + 1 / 2.
Tensor hardsigmoid(Tensor x, Loc loc = Loc::current());

/// Returns x * hardsigmoid(x).
Tensor hardswish(Tensor x, Loc loc = Loc::current());

/// Returns x * tanh(softplus(x)).
Tensor mish(Tensor x, Loc loc = Loc::current());

/// Returns log(sigmoid(x)), computed stably.
Tensor logsigmoid(Tensor x, Loc loc = Loc::current());

/// Returns x / (1 + |x|).
Tensor softsign(Tensor x, Loc loc = Loc::current());

/// Returns x - tanh(x).
Tensor tanhshrink(Tensor x, Loc loc = Loc::current());

/// Returns `x` if x > bound, else `value`. NaN becomes `value`.
Tensor threshold(Tensor x, double bound, double value, Loc loc = Loc::current());

/// Returns the first half of an axis times the sigmoid of the second half (Dauphin et al. 2017).
/// Throws ShapeError if the size of the axis is odd.
Tensor glu(Tensor x, int axis = -1, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
