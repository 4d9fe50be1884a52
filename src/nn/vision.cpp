// SPDX-License-Identifier: MIT
// Layers for images and signals: convolutions, pooling, resizing.
#include <cmath>

#include "tensorgrad/functional.h"
#include "tensorgrad/nn.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {
namespace {

// Returns PyTorch's default for convolutions, kaiming_uniform with a = sqrt(5): uniform within
// +-1/sqrt(fan_in). fan_in is the product of the sizes of all axes but the first.
Init uniform_by_fan_in(const Shape& weight) {
  std::int64_t fan_in = 1;
  for (std::size_t d = 1; d < weight.size(); ++d) fan_in *= weight[d];
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return init::uniform(-bound, bound);
}

Shape weight_shape(const char* name, std::int64_t first, std::int64_t second, std::int64_t groups,
                   const Shape& kernel, Loc loc) {
  if (groups < 1 || first % groups != 0 || second % groups != 0) {
    throw ShapeError(std::string(name) + ": " + std::to_string(groups) +
                         " groups do not divide the channels " + std::to_string(first) + " and " +
                         std::to_string(second),
                     loc);
  }
  Shape shape = {first, second / groups};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return shape;
}

Parameter make_weight(const Shape& shape, Loc loc) {
  return Parameter(shape, uniform_by_fan_in(shape), loc);
}

std::optional<Parameter> make_bias(bool wanted, std::int64_t size, const Parameter& weight,
                                   Loc loc) {
  if (!wanted) return std::nullopt;
  return Parameter({size}, uniform_by_fan_in(weight.shape()), loc);
}

std::optional<Tensor> value_of(const std::optional<Parameter>& bias, Loc loc) {
  if (!bias) return std::nullopt;
  return bias->tensor(loc);
}

}  // namespace

Conv2d::Conv2d(std::int64_t in, std::int64_t out, Size2d kernel, const Conv2dOptions& how,
               bool with_bias, Loc loc)
    : options(how),
      weight(
          make_weight(weight_shape("Conv2d", out, in, how.groups, {kernel.h, kernel.w}, loc), loc)),
      bias(make_bias(with_bias, out, weight, loc)) {}

Tensor Conv2d::operator()(Tensor x, Loc loc) const {
  return conv2d(x, weight.tensor(loc), value_of(bias, loc), options, loc);
}

Conv1d::Conv1d(std::int64_t in, std::int64_t out, std::int64_t kernel, const Conv1dOptions& how,
               bool with_bias, Loc loc)
    : options(how),
      weight(make_weight(weight_shape("Conv1d", out, in, how.groups, {kernel}, loc), loc)),
      bias(make_bias(with_bias, out, weight, loc)) {}

Tensor Conv1d::operator()(Tensor x, Loc loc) const {
  return conv1d(x, weight.tensor(loc), value_of(bias, loc), options, loc);
}

ConvTranspose2d::ConvTranspose2d(std::int64_t in, std::int64_t out, Size2d kernel,
                                 const ConvTranspose2dOptions& how, bool with_bias, Loc loc)
    : options(how),
      weight(make_weight(
          weight_shape("ConvTranspose2d", in, out, how.groups, {kernel.h, kernel.w}, loc), loc)),
      bias(make_bias(with_bias, out, weight, loc)) {}

Tensor ConvTranspose2d::operator()(Tensor x, Loc loc) const {
  return conv_transpose2d(x, weight.tensor(loc), value_of(bias, loc), options, loc);
}

ConvTranspose1d::ConvTranspose1d(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                 const ConvTranspose1dOptions& how, bool with_bias, Loc loc)
    : options(how),
      weight(make_weight(weight_shape("ConvTranspose1d", in, out, how.groups, {kernel}, loc), loc)),
      bias(make_bias(with_bias, out, weight, loc)) {}

Tensor ConvTranspose1d::operator()(Tensor x, Loc loc) const {
  return conv_transpose1d(x, weight.tensor(loc), value_of(bias, loc), options, loc);
}

Tensor MaxPool2d::operator()(Tensor x, Loc loc) const {
  return max_pool2d(x, kernel, options, loc);
}

Tensor AvgPool2d::operator()(Tensor x, Loc loc) const {
  return avg_pool2d(x, kernel, options, loc);
}

Tensor AdaptiveAvgPool2d::operator()(Tensor x, Loc loc) const {
  return adaptive_avg_pool2d(x, size, loc);
}

Tensor Upsample::operator()(Tensor x, Loc loc) const {
  const Size2d size = {x.size(-2, loc) * scale.h, x.size(-1, loc) * scale.w};
  return interpolate(x, size, mode, align_corners, loc);
}

Tensor Flatten::operator()(Tensor x, Loc loc) const { return flatten(x, first, last, loc); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
