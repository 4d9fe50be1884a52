// SPDX-License-Identifier: MIT
// Activations and dropout, composed of other ops. where() evaluates both branches, so the argument
// of the branch not taken is replaced by one with a finite gradient: 0 * infinity would be NaN.
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "base/numbers.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"
#include "tensorgrad/ops/autograd.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace {

// Returns y(x) with the gradient dy * slope(x, y). The forward pass can compute the slope while x
// and y are at hand, and only this value is saved; the chain rule would read several intermediate
// values again. The slope is saved as f16 if `downcast` makes the result f16.
Tensor with_slope(Tensor x, Tensor y, const std::function<Tensor(Tensor x, Tensor y)>& slope,
                  const Upcast& downcast, Loc loc) {
  return custom_gradient(
      {x}, [&](const std::vector<Tensor>&) { return y; },
      [&](const std::vector<Tensor>& in, Tensor result, Tensor dy) {
        Tensor kept = downcast(slope(in[0], result));
        upcast({&kept});
        return std::vector<Tensor>{dy * kept};
      },
      loc);
}

Tensor exact_gelu(Tensor x, const Upcast& downcast, Loc loc) {
  // Probability that a standard normal variable is less than v.
  const auto probability = [](Tensor v) {
    return 0.5 * (1.0 + erf(v * (1.0 / std::numbers::sqrt2)));
  };
  return with_slope(
      x, x * probability(x),
      [&](Tensor v, Tensor) {
        const double peak = 0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2;
        return probability(v) + v * (peak * exp(-0.5 * v * v));
      },
      downcast, loc);
}

Tensor tanh_gelu(Tensor x, const Upcast& downcast, Loc loc) {
  const double c = std::sqrt(2.0 / std::numbers::pi), cubic = 0.044715;
  const auto half = [&](Tensor v) { return 0.5 * (1.0 + tanh(c * (v + cubic * v * v * v))); };
  return with_slope(
      x, x * half(x),
      [&](Tensor v, Tensor) {
        const Tensor h = half(v);  // (1 - tanh^2) / 2 = 2 h (1 - h)
        return h + v * (2.0 * h * (1.0 - h)) * (c * (1.0 + 3.0 * cubic * v * v));
      },
      downcast, loc);
}

}  // namespace

Tensor gelu(Tensor x, GeluApproximation form, Loc loc) {
  const Composite composite("gelu", loc);
  const Upcast downcast(x);
  return downcast(form == GeluApproximation::kNone ? exact_gelu(x, downcast, loc)
                                                   : tanh_gelu(x, downcast, loc));
}

Tensor silu(Tensor x, Loc loc) {
  const Composite composite("silu", loc);
  const Upcast downcast(x);
  const auto slope = [](Tensor v, Tensor y) {
    const Tensor s = sigmoid(v);
    return s + y * (1.0 - s);
  };
  return downcast(with_slope(x, x * sigmoid(x), slope, downcast, loc));
}

Tensor leaky_relu(Tensor x, double slope, Loc loc) {
  const Composite composite("leaky_relu", loc);
  const Upcast downcast(x);
  return downcast(where(gt(x, 0.0), x, slope * x));
}

Tensor prelu(Tensor x, Tensor weight, Loc loc) {
  const Composite composite("prelu", loc);
  const Upcast downcast(x);
  const bool one = weight.shape() == Shape{1};
  const bool channels = x.rank() >= 2 && weight.shape() == Shape{x.size(1)};
  if (!one && !channels) {
    throw ShapeError("prelu: weight must be [1] or match axis 1 of x " + to_string(x.shape()) +
                         ", got " + to_string(weight.shape()),
                     loc);
  }
  Tensor slope = weight;
  if (!one) {
    Shape shape(static_cast<size_t>(x.rank()) - 1, 1);
    shape[0] = x.size(1);
    slope = reshape(weight, shape, loc);
  }
  return downcast(where(gt(x, 0.0), x, slope * x));
}

namespace {

// Returns alpha (e^(x / alpha') - 1) for x <= 0, otherwise x. `inner` is 1 / alpha'.
Tensor exponential_below(Tensor x, double alpha, double inner) {
  const Tensor positive = gt(x, 0.0);
  return where(positive, x, alpha * expm1(where(positive, 0.0, x) * inner));
}

}  // namespace

Tensor elu(Tensor x, double alpha, Loc loc) {
  const Composite composite("elu", loc);
  const Upcast downcast(x);
  return downcast(exponential_below(x, alpha, 1));
}

Tensor celu(Tensor x, double alpha, Loc loc) {
  const Composite composite("celu", loc);
  const Upcast downcast(x);
  if (alpha == 0) throw UserError("celu: alpha must not be 0", loc);
  return downcast(exponential_below(x, alpha, 1 / alpha));
}

namespace {
constexpr double kSeluAlpha = 1.6732632423543772, kSeluScale = 1.0507009873554805;
}  // namespace

Tensor selu(Tensor x, Loc loc) {
  const Composite composite("selu", loc);
  const Upcast downcast(x);
  return downcast(kSeluScale * exponential_below(x, kSeluAlpha, 1));
}

Tensor hardtanh(Tensor x, double lo, double hi, Loc loc) {
  const Composite composite("hardtanh", loc);
  if (!(lo <= hi)) {
    throw UserError("hardtanh: the lower bound " + number_text(lo) + " is above the upper bound " +
                        number_text(hi),
                    loc);
  }
  const Tensor number = !isnan(x);  // comparisons with NaN may be true on GPUs
  return where(number && le(x, lo), lo, where(number && ge(x, hi), hi, x));
}

Tensor relu6(Tensor x, Loc loc) {
  const Composite composite("relu6", loc);
  return hardtanh(x, 0, 6, loc);
}

Tensor hardsigmoid(Tensor x, Loc loc) {
  const Composite composite("hardsigmoid", loc);
  const Upcast downcast(x);
  return downcast(hardtanh(x, -3, 3, loc) * (1.0 / 6) + 0.5);
}

Tensor hardswish(Tensor x, Loc loc) {
  const Composite composite("hardswish", loc);
  const Upcast downcast(x);
  return downcast(x * hardsigmoid(x, loc));
}

Tensor mish(Tensor x, Loc loc) {
  const Composite composite("mish", loc);
  const Upcast downcast(x);
  const auto slope = [](Tensor v, Tensor) {
    const Tensor t = tanh(softplus(v));
    return t + v * (1.0 - t * t) * sigmoid(v);
  };
  return downcast(with_slope(x, x * tanh(softplus(x)), slope, downcast, loc));
}

Tensor logsigmoid(Tensor x, Loc loc) {
  const Composite composite("logsigmoid", loc);
  const Upcast downcast(x);
  return downcast(-softplus(-x));
}

Tensor softsign(Tensor x, Loc loc) {
  const Composite composite("softsign", loc);
  const Upcast downcast(x);
  return downcast(x / (1.0 + abs(x)));
}

Tensor tanhshrink(Tensor x, Loc loc) {
  const Composite composite("tanhshrink", loc);
  const Upcast downcast(x);
  return downcast(x - tanh(x));
}

Tensor threshold(Tensor x, double bound, double value, Loc loc) {
  const Composite composite("threshold", loc);
  return where(le(x, bound) && !isnan(x), value, x);
}

Tensor glu(Tensor x, int axis, Loc loc) {
  const Composite composite("glu", loc);
  const Upcast downcast(x);
  const std::int64_t size = x.size(axis);
  if (size % 2 != 0) {
    throw ShapeError(
        "glu: axis " + std::to_string(axis) + " of " + to_string(x.shape()) + " cannot be halved",
        loc);
  }
  return downcast(narrow(x, axis, 0, size / 2, loc) *
                  sigmoid(narrow(x, axis, size / 2, size / 2, loc)));
}

// ---- dropout -----------------------------------------------------------------------------------

bool is_training(Loc loc) { return Trace::current("is_training", loc).training; }

TrainingMode::TrainingMode(bool training, Loc loc)
    : trace_(&Trace::current("TrainingMode", loc)), before_(trace_->training) {
  trace_->training = training;
}

TrainingMode::~TrainingMode() { trace_->training = before_; }

namespace {

// Returns the mask of elements to keep. Null if all are kept: in eval mode or with p = 0.
std::optional<Tensor> kept(const std::string& op, const Shape& shape, double p, Loc loc) {
  if (!(p >= 0 && p <= 1)) {
    throw UserError(op + ": the probability must be in [0, 1], got " + number_text(p), loc);
  }
  if (p == 0 || !is_training(loc)) return std::nullopt;
  if (p == 1) return full(shape, 0, DType::kBool, loc);
  return ge(rand(shape, loc), p);
}

Tensor drop(const char* op, Tensor x, const Shape& pattern, double p, Loc loc) {
  const std::optional<Tensor> keep = kept(op, pattern, p, loc);
  return keep ? where(*keep, p == 1 ? x : x * (1.0 / (1.0 - p)), 0.0) : x;
}

Tensor drop_channels(const char* op, Tensor x, int rank, double p, Loc loc) {
  const Composite composite(op, loc);
  if (x.rank() != rank) {
    throw ShapeError(std::string(op) + ": expected " + std::to_string(rank) + " axes, got " +
                         to_string(x.shape()),
                     loc);
  }
  Shape pattern(static_cast<size_t>(rank), 1);
  pattern[0] = x.size(0);
  pattern[1] = x.size(1);
  return drop(op, x, pattern, p, loc);
}

}  // namespace

Tensor dropout(Tensor x, double p, Loc loc) {
  const Composite composite("dropout", loc);
  const Upcast downcast(x);
  return downcast(drop("dropout", x, x.shape(), p, loc));
}

Tensor dropout1d(Tensor x, double p, Loc loc) { return drop_channels("dropout1d", x, 3, p, loc); }

Tensor dropout2d(Tensor x, double p, Loc loc) { return drop_channels("dropout2d", x, 4, p, loc); }

// Sets dropped elements to selu(-infinity). The affine map a x + b then restores mean and variance.
Tensor alpha_dropout(Tensor x, double p, Loc loc) {
  const Composite composite("alpha_dropout", loc);
  const std::optional<Tensor> keep = kept("alpha_dropout", x.shape(), p, loc);
  if (!keep) return x;
  if (p == 1) return where(*keep, x, 0.0);
  const Upcast downcast(x);
  const double low = -kSeluAlpha * kSeluScale;
  const double a = 1 / std::sqrt((1 - p) * (1 + p * low * low));
  return downcast(a * where(*keep, x, low) - a * p * low);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
