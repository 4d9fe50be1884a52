// SPDX-License-Identifier: MIT
// Normalising layers.
#include "tensorgrad/nn/norms.h"

namespace tensorgrad::nn {

LayerNorm::LayerNorm(const Shape& normalized, double epsilon, bool with_bias, Loc loc)
    : weight(normalized, init::ones(), loc), eps(epsilon) {
  if (with_bias) bias.emplace(normalized, init::zeros(), loc);
}
LayerNorm::LayerNorm(std::int64_t size, double epsilon, bool with_bias, Loc loc)
    : LayerNorm(Shape{size}, epsilon, with_bias, loc) {}

Tensor LayerNorm::operator()(Tensor x, Loc loc) const {
  std::optional<Tensor> b;
  if (bias) b = bias->tensor(loc);
  return layer_norm(x, weight.shape(), weight.tensor(loc), b, eps, loc);
}

RMSNorm::RMSNorm(const Shape& normalized, double epsilon, Loc loc)
    : weight(normalized, init::ones(), loc), eps(epsilon) {}
RMSNorm::RMSNorm(std::int64_t size, double epsilon, Loc loc) : RMSNorm(Shape{size}, epsilon, loc) {}

Tensor RMSNorm::operator()(Tensor x, Loc loc) const {
  return rms_norm(x, weight.tensor(loc), eps, loc);
}

GroupNorm::GroupNorm(std::int64_t number, std::int64_t channels, double epsilon, Loc loc)
    : groups(number),
      weight({channels}, init::ones(), loc),
      bias({channels}, init::zeros(), loc),
      eps(epsilon) {}

Tensor GroupNorm::operator()(Tensor x, Loc loc) const {
  return group_norm(x, groups, weight.tensor(loc), bias.tensor(loc), eps, loc);
}

InstanceNorm::InstanceNorm(std::int64_t count, double epsilon, bool affine, Loc loc)
    : channels(count), eps(epsilon) {
  if (!affine) return;
  weight.emplace(Shape{channels}, init::ones(), loc);
  bias.emplace(Shape{channels}, init::zeros(), loc);
}

Tensor InstanceNorm::operator()(Tensor x, Loc loc) const {
  std::optional<Tensor> w, b;
  if (weight) w = weight->tensor(loc);
  if (bias) b = bias->tensor(loc);
  return instance_norm(x, w, b, eps, loc);
}

BatchNorm::BatchNorm(std::int64_t channels, double epsilon, double share, Loc loc)
    : weight({channels}, init::ones(), loc),
      bias({channels}, init::zeros(), loc),
      running_mean({channels}, 0, f32, loc),
      running_var({channels}, 1, f32, loc),
      eps(epsilon),
      momentum(share) {}

Tensor BatchNorm::operator()(Tensor x, Loc loc) const {
  const Tensor w = weight.tensor(loc), b = bias.tensor(loc);
  const Tensor old_mean = running_mean.tensor(loc), old_var = running_var.tensor(loc);
  if (!is_training(loc)) return batch_norm(x, old_mean, old_var, w, b, eps, loc);
  const auto [mean, var] = batch_statistics(x, loc);
  const Tensor y = batch_norm(x, mean, var, w, b, eps, loc);
  const std::int64_t rows = numel(x.shape(loc)) / numel(var.shape(loc));
  const auto count = static_cast<double>(rows);
  if (count < 2) {
    throw ShapeError("batch_norm: more than one value for each channel expected in training, got " +
                         to_string(x.shape(loc)),
                     loc);
  }
  const Tensor unbiased = detach(var) * (count / (count - 1));
  running_mean.set(old_mean * (1 - momentum) + detach(mean) * momentum, loc);
  running_var.set(old_var * (1 - momentum) + unbiased * momentum, loc);
  return y;
}

}  // namespace tensorgrad::nn
