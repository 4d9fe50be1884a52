// SPDX-License-Identifier: MIT
// Activations and dropout as modules, for Sequential.
#pragma once

#include "tensorgrad/nn/module.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::nn {

struct Identity {
  TG_MODULE()
  Tensor operator()(Tensor x) const { return x; }
};

// An op of functional.h without settings.
template <Tensor (*kOp)(Tensor, Loc)>
struct Activation {
  TG_MODULE()
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return kOp(x, loc); }
};
using SiLU = Activation<silu>;
using SELU = Activation<selu>;
using ReLU6 = Activation<relu6>;
using Hardsigmoid = Activation<hardsigmoid>;
using Hardswish = Activation<hardswish>;
using Mish = Activation<mish>;
using LogSigmoid = Activation<logsigmoid>;
using Softsign = Activation<softsign>;
using Tanhshrink = Activation<tanhshrink>;

// An op of pointwise.h.
template <Tensor (*kOp)(Operand)>
struct Pointwise {
  TG_MODULE()
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return kOp(Operand(x, loc)); }
};
using ReLU = Pointwise<relu>;
using Tanh = Pointwise<tanh>;
using Sigmoid = Pointwise<sigmoid>;
using Softplus = Pointwise<softplus>;

struct GELU {
  Gelu form = Gelu::kExact;
  TG_MODULE(form)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return gelu(x, form, loc); }
};
struct LeakyReLU {
  double slope = 0.01;
  TG_MODULE(slope)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return leaky_relu(x, slope, loc); }
};
struct ELU {
  double alpha = 1;
  TG_MODULE(alpha)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return elu(x, alpha, loc); }
};
struct CELU {
  double alpha = 1;
  TG_MODULE(alpha)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return celu(x, alpha, loc); }
};
struct Hardtanh {
  double lo = -1, hi = 1;
  TG_MODULE(lo, hi)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return hardtanh(x, lo, hi, loc); }
};
struct Threshold {
  double bound, value;
  TG_MODULE(bound, value)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const {
    return threshold(x, bound, value, loc);
  }
};
struct GLU {
  int axis = -1;
  TG_MODULE(axis)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return glu(x, axis, loc); }
};
struct Softmax {
  int axis = -1;
  TG_MODULE(axis)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return softmax(x, axis, loc); }
};
struct LogSoftmax {
  int axis = -1;
  TG_MODULE(axis)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return log_softmax(x, axis, loc); }
};
// leaky_relu with learned slopes, one or one for each channel: weight [count], 0.25 at first.
struct PReLU {
  explicit PReLU(std::int64_t count = 1, double initial = 0.25, Loc loc = Loc::current());

  Parameter weight;
  TG_MODULE(weight)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

// Active in training only (see is_training()).
struct Dropout {
  explicit Dropout(double probability = 0.5) : p(probability) {}
  double p;
  TG_MODULE(p)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return dropout(x, p, loc); }
};
struct Dropout1d {
  explicit Dropout1d(double probability = 0.5) : p(probability) {}
  double p;
  TG_MODULE(p)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return dropout1d(x, p, loc); }
};
struct Dropout2d {
  explicit Dropout2d(double probability = 0.5) : p(probability) {}
  double p;
  TG_MODULE(p)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return dropout2d(x, p, loc); }
};
struct AlphaDropout {
  explicit AlphaDropout(double probability = 0.5) : p(probability) {}
  double p;
  TG_MODULE(p)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return alpha_dropout(x, p, loc); }
};

}  // namespace tensorgrad::nn
