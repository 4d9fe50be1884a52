// SPDX-License-Identifier: MIT
// Normalization layers.
#include "tensorgrad/functional.h"
#include "tensorgrad/nn/normalization.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

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
    : BatchNorm(channels, Options{.epsilon = epsilon, .momentum = share}, loc) {}
BatchNorm::BatchNorm(std::int64_t channels, const Options& options, Loc loc)
    : eps(options.epsilon), momentum(options.momentum) {
  const Shape shape = {channels};
  if (options.affine) {
    weight.emplace(shape, init::ones(), loc);
    bias.emplace(shape, init::zeros(), loc);
  }
  if (options.track_running_stats) {
    running_mean.emplace(shape, 0, f32, loc);
    running_var.emplace(shape, 1, f32, loc);
  }
}

Tensor BatchNorm::operator()(Tensor x, Loc loc) const {
  std::optional<Tensor> w, b;
  if (weight) w = weight->tensor(loc);
  if (bias) b = bias->tensor(loc);
  const bool training = is_training(loc);
  if (running_mean && !training)
    return batch_norm(x, running_mean->tensor(loc), running_var->tensor(loc), w, b, eps, loc);
  const auto [mean, var] = batch_statistics(x, loc);
  const Tensor y = batch_norm(x, mean, var, w, b, eps, loc);
  const std::int64_t rows = numel(x.shape(loc)) / numel(var.shape(loc));
  const auto count = static_cast<double>(rows);
  if (training && count < 2) {
    throw ShapeError("batch_norm: expected more than one value per channel in training, got " +
                         to_string(x.shape(loc)),
                     loc);
  }
  if (running_mean) {
    const auto move = [&](const Buffer& running, const Tensor& now) {
      running.set(running.tensor(loc) * (1 - momentum) + now * momentum, loc);
    };
    move(*running_mean, detach(mean));
    move(*running_var, detach(var) * (count / (count - 1)));
  }
  return y;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
