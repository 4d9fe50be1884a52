// SPDX-License-Identifier: MIT
// Activation functions and dropout as modules, for example for Sequential.
#pragma once

#include "tensorgrad/functional/activations.h"
#include "tensorgrad/functional/dropout.h"
#include "tensorgrad/nn/module.h"
#include "tensorgrad/ops/pointwise.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Module that returns its input.
struct Identity {
  TG_MODULE()

  /// Returns `x`.
  Tensor operator()(Tensor x) const { return x; }
};

/// Module that applies an op of functional/activations.h without options.
template <Tensor (*kOp)(Tensor, Loc)>
struct Activation {
  TG_MODULE()

  /// Returns `kOp(x)`.
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return kOp(x, loc); }
};

/// Module for the activation function of the same name.
using SiLU = Activation<silu>;
using SELU = Activation<selu>;
using ReLU6 = Activation<relu6>;
using Hardsigmoid = Activation<hardsigmoid>;
using Hardswish = Activation<hardswish>;
using Mish = Activation<mish>;
using LogSigmoid = Activation<logsigmoid>;
using Softsign = Activation<softsign>;
using Tanhshrink = Activation<tanhshrink>;

/// Module that applies a pointwise op of one operand (ops/pointwise.h).
template <Tensor (*kOp)(Operand)>
struct Pointwise {
  TG_MODULE()

  /// Returns `kOp(x)`.
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return kOp(Operand(x, loc)); }
};

/// Module for the pointwise op of the same name.
using ReLU = Pointwise<relu>;
using Tanh = Pointwise<tanh>;
using Sigmoid = Pointwise<sigmoid>;
using Softplus = Pointwise<softplus>;

/// Module for gelu().
struct GELU {
  GeluApproximation approximation = GeluApproximation::kNone;  ///< Formula of gelu().
  TG_MODULE(approximation)

  /// Returns gelu(x, approximation).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const {
    return gelu(x, approximation, loc);
  }
};

/// Module for leaky_relu().
struct LeakyReLU {
  double slope = 0.01;  ///< Factor of negative elements.
  TG_MODULE(slope)

  /// Returns leaky_relu(x, slope).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return leaky_relu(x, slope, loc); }
};

/// Module for elu().
struct ELU {
  double alpha = 1;  ///< The limit at -infinity is -alpha.
  TG_MODULE(alpha)

  /// Returns elu(x, alpha).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return elu(x, alpha, loc); }
};

/// Module for celu().
struct CELU {
  double alpha = 1;  ///< The limit at -infinity is -alpha. Not 0.
  TG_MODULE(alpha)

  /// Returns celu(x, alpha).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return celu(x, alpha, loc); }
};

/// Module for hardtanh().
struct Hardtanh {
  double lo = -1, hi = 1;  ///< Bounds of the result, lo <= hi.
  TG_MODULE(lo, hi)

  /// Returns hardtanh(x, lo, hi).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return hardtanh(x, lo, hi, loc); }
};

/// Module for threshold().
struct Threshold {
  double bound;  ///< Elements up to this bound are replaced.
  double value;  ///< Result for these elements.
  TG_MODULE(bound, value)

  /// Returns threshold(x, bound, value).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const {
    return threshold(x, bound, value, loc);
  }
};

/// Module for glu().
struct GLU {
  int axis = -1;  ///< Axis that is halved. Its size is even; negative: from the end.
  TG_MODULE(axis)

  /// Returns glu(x, axis).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return glu(x, axis, loc); }
};

/// Module for softmax().
struct Softmax {
  int axis = -1;  ///< Axis along which the results sum to 1; negative: from the end.
  TG_MODULE(axis)

  /// Returns softmax(x, axis).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return softmax(x, axis, loc); }
};

/// Module for log_softmax().
struct LogSoftmax {
  int axis = -1;  ///< See Softmax::axis.
  TG_MODULE(axis)

  /// Returns log_softmax(x, axis).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return log_softmax(x, axis, loc); }
};

/// Module for prelu(): leaky_relu() with learned slopes.
struct PReLU {
  /// Creates a weight [count]: one slope for all elements if `count` is 1, else one for each
  /// channel. The slopes start at `initial`.
  explicit PReLU(std::int64_t count = 1, double initial = 0.25, Loc loc = Loc::current());

  Parameter weight;  ///< Slopes of negative elements: [count].
  TG_MODULE(weight)

  /// Returns prelu(x, weight).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Module for dropout(). Active only during training (see is_training()).
struct Dropout {
  /// Creates a module that drops with a probability in [0, 1].
  explicit Dropout(double probability = 0.5) : p(probability) {}

  double p;  ///< Probability of dropping an element.
  TG_MODULE(p)

  /// Returns dropout(x, p).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return dropout(x, p, loc); }
};

/// Module for dropout1d(). Active only during training.
struct Dropout1d {
  /// Creates a module that drops with a probability in [0, 1].
  explicit Dropout1d(double probability = 0.5) : p(probability) {}

  double p;  ///< Probability of dropping a channel.
  TG_MODULE(p)

  /// Returns dropout1d(x, p).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return dropout1d(x, p, loc); }
};

/// Module for dropout2d(). Active only during training.
struct Dropout2d {
  /// Creates a module that drops with a probability in [0, 1].
  explicit Dropout2d(double probability = 0.5) : p(probability) {}

  double p;  ///< Probability of dropping a channel.
  TG_MODULE(p)

  /// Returns dropout2d(x, p).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return dropout2d(x, p, loc); }
};

/// Module for alpha_dropout(). Active only during training.
struct AlphaDropout {
  /// Creates a module that drops with a probability in [0, 1].
  explicit AlphaDropout(double probability = 0.5) : p(probability) {}

  double p;  ///< Probability of dropping an element.
  TG_MODULE(p)

  /// Returns alpha_dropout(x, p).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return alpha_dropout(x, p, loc); }
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
