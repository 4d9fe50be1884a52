// SPDX-License-Identifier: MIT
// Normalization layers, composed of other ops.
#include <algorithm>
#include <vector>

#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"
#include "tensorgrad/ops/autograd.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

using Maybe = std::optional<Tensor>;

void check_affine(const char* op, const Maybe& weight, const Maybe& bias, const Shape& expected,
                  const Shape& given, Loc loc) {
  for (const Maybe& each : {weight, bias}) {
    if (!each || each->shape() == expected) continue;
    throw ShapeError(std::string(op) + ": weight and bias must be " + to_string(expected) +
                         " for x " + to_string(given) + ", got " + to_string(each->shape()),
                     loc);
  }
}

Tensor affine(Tensor x, const Maybe& weight, const Maybe& bias) {
  if (weight) x = x * *weight;
  if (bias) x = x + *bias;
  return x;
}

// Mean and variance over axes. The rounding error of the mean matters if the deviations are small.
// It is estimated as the mean of the deviations, and both results are corrected for it.
struct Moments {
  Moments(Tensor x, const Axes& axes, Loc loc) {
    const Tensor first = tensorgrad::mean(x, axes, true, loc), centred = x - first;
    const Tensor rest = tensorgrad::mean(centred, axes, true, loc);
    mean = first + rest;
    var = tensorgrad::mean(square(centred), axes, true, loc) - square(rest);
  }
  Tensor mean, var;
};

// Returns y = (x - mean) s with s = 1 / sqrt(var + eps) over the axes. The gradient in closed form,
//   s (dy - mean(dy) - y mean(dy y)),
// reads only y and s; the chain rule would read more intermediate values.
Tensor standardised(Tensor x, const Axes& axes, double eps, Loc loc) {
  const auto scale = [&](const Moments& moments) { return rsqrt(moments.var + eps); };
  return custom_gradient(
      {x},
      [&](const std::vector<Tensor>&) {
        const Moments moments(x, axes, loc);
        return (x - moments.mean) * scale(moments);
      },
      [&](const std::vector<Tensor>&, Tensor y, Tensor dy) {
        const Tensor along = y * mean(dy * y, axes, true, loc);
        const Tensor across = dy - mean(dy, axes, true, loc) - along;
        return std::vector<Tensor>{scale(Moments(x, axes, loc)) * across};
      },
      loc);
}

// Returns y = x s with s = 1 / sqrt(mean(x^2) + eps). The gradient is
//   dx = s (dy - y mean(dy y)).
Tensor scaled_to_unit(Tensor x, const Axes& axes, double eps, Loc loc) {
  const auto scale = [&](Tensor v) { return rsqrt(mean(square(v), axes, true, loc) + eps); };
  return custom_gradient(
      {x}, [&](const std::vector<Tensor>&) { return x * scale(x); },
      [&](const std::vector<Tensor>&, Tensor y, Tensor dy) {
        return std::vector<Tensor>{scale(x) * (dy - y * mean(dy * y, axes, true, loc))};
      },
      loc);
}

// Returns the last axes, which must have these sizes.
Axes last_axes(const char* op, Tensor x, const Shape& sizes, Loc loc) {
  const Shape shape = x.shape();
  if (sizes.empty() || sizes.size() > shape.size() ||
      !std::equal(sizes.rbegin(), sizes.rend(), shape.rbegin())) {
    throw ShapeError(std::string(op) + ": the last axes of x " + to_string(shape) + " are not " +
                         to_string(sizes),
                     loc);
  }
  Axes axes;
  for (int d = -static_cast<int>(sizes.size()); d < 0; ++d) axes.list.push_back(d);
  return axes;
}

// Reshapes a vector [C] to [C, 1, ..], to broadcast along axis 1 of x.
Maybe by_channel(const Maybe& vector, Tensor x, Loc loc) {
  if (!vector) return vector;
  Shape shape(static_cast<size_t>(x.rank()) - 1, 1);
  shape[0] = vector->size(0);
  return reshape(*vector, shape, loc);
}

void check_channels(const char* op, Tensor x, Loc loc) {
  if (x.rank() >= 2) return;
  throw ShapeError(std::string(op) + ": expected x [N, C, ...], got " + to_string(x.shape()), loc);
}

// Returns all axes of x [N, C, ...] except the channel axis.
Axes around_channels(Tensor x) {
  Axes axes;
  for (int d = 0; d < x.rank(); ++d) {
    if (d != 1) axes.list.push_back(d);
  }
  return axes;
}

Tensor grouped(const char* op, Tensor x, std::int64_t groups, const Maybe& weight,
               const Maybe& bias, double eps, Loc loc) {
  const Shape shape = x.shape();
  check_channels(op, x, loc);
  if (groups < 1 || shape[1] % groups != 0) {
    throw ShapeError(std::string(op) + ": the " + std::to_string(shape[1]) + " channels of x " +
                         to_string(shape) + " cannot be divided into " + std::to_string(groups) +
                         " groups",
                     loc);
  }
  check_affine(op, weight, bias, {shape[1]}, shape, loc);
  const Tensor rows = reshape(x, {shape[0], groups, -1}, loc);
  const Tensor y = reshape(standardised(rows, -1, eps, loc), shape, loc);
  return affine(y, by_channel(weight, x, loc), by_channel(bias, x, loc));
}

}  // namespace

Tensor layer_norm(Tensor x, Maybe weight, Maybe bias, double eps, Loc loc) {
  const Composite composite("layer_norm", loc);
  const Upcast downcast(x);
  check_affine("layer_norm", weight, bias, {x.size(-1)}, x.shape(), loc);
  return downcast(affine(standardised(x, -1, eps, loc), weight, bias));
}

Tensor layer_norm(Tensor x, const Shape& normalized, Maybe weight, Maybe bias, double eps,
                  Loc loc) {
  const Composite composite("layer_norm", loc);
  const Upcast downcast(x);
  const Axes axes = last_axes("layer_norm", x, normalized, loc);
  check_affine("layer_norm", weight, bias, normalized, x.shape(), loc);
  return downcast(affine(standardised(x, axes, eps, loc), weight, bias));
}

Tensor rms_norm(Tensor x, Maybe weight, double eps, Loc loc) {
  const Composite composite("rms_norm", loc);
  const Upcast downcast(x);
  const Axes axes = weight ? last_axes("rms_norm", x, weight->shape(), loc) : Axes(-1);
  return downcast(affine(scaled_to_unit(x, axes, eps, loc), weight, std::nullopt));
}

Tensor group_norm(Tensor x, std::int64_t groups, Maybe weight, Maybe bias, double eps, Loc loc) {
  const Composite composite("group_norm", loc);
  const Upcast downcast(x);
  return downcast(grouped("group_norm", x, groups, weight, bias, eps, loc));
}

Tensor instance_norm(Tensor x, Maybe weight, Maybe bias, double eps, Loc loc) {
  const Composite composite("instance_norm", loc);
  const Upcast downcast(x);
  check_channels("instance_norm", x, loc);
  return downcast(grouped("instance_norm", x, x.size(1), weight, bias, eps, loc));
}

std::pair<Tensor, Tensor> batch_statistics(Tensor x, Loc loc) {
  const Composite composite("batch_statistics", loc);
  upcast({&x});
  check_channels("batch_statistics", x, loc);
  const Axes axes = around_channels(x);
  const Tensor centre = mean(x, axes, true, loc), centred = x - centre;
  const Tensor rest = detach(mean(centred, axes, true, loc));
  const Tensor var = mean(square(centred), axes, true, loc) - square(rest);
  return {reshape(centre + rest, {x.size(1)}, loc), reshape(var, {x.size(1)}, loc)};
}

Tensor batch_norm(Tensor x, Tensor mean, Tensor var, Maybe weight, Maybe bias, double eps,
                  Loc loc) {
  const Composite composite("batch_norm", loc);
  const Upcast downcast(x);
  check_channels("batch_norm", x, loc);
  const Shape channels = {x.size(1)};
  if (mean.shape() != channels || var.shape() != channels) {
    throw ShapeError("batch_norm: mean and var must be " + to_string(channels) + " for x " +
                         to_string(x.shape()) + ", got " + to_string(mean.shape()) + " and " +
                         to_string(var.shape()),
                     loc);
  }
  check_affine("batch_norm", weight, bias, channels, x.shape(), loc);
  const Tensor y = (x - *by_channel(mean, x, loc)) * rsqrt(*by_channel(var, x, loc) + eps);
  return downcast(affine(y, by_channel(weight, x, loc), by_channel(bias, x, loc)));
}

Tensor normalize(Tensor x, int axis, double eps, Loc loc) {
  const Composite composite("normalize", loc);
  const Upcast downcast(x);
  const Tensor squares = sum(square(x), axis, true, loc), low = lt(squares, eps * eps);
  // Below the bound, the gradient of the length is 0, and the argument of sqrt is kept away from 0.
  return downcast(x / where(low, eps, sqrt(where(low, 1.0, squares))));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
