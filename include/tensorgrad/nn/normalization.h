// SPDX-License-Identifier: MIT
// Normalising layers. Weights begin as 1, biases as 0.
#pragma once

#include "tensorgrad/nn/module.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::nn {

// layer_norm over the last axis, or the last axes, of these sizes.
struct LayerNorm {
  explicit LayerNorm(std::int64_t size, double epsilon = 1e-5, bool with_bias = true,
                     Loc loc = Loc::current());
  explicit LayerNorm(const Shape& normalized, double epsilon = 1e-5, bool with_bias = true,
                     Loc loc = Loc::current());

  Parameter weight;
  std::optional<Parameter> bias;
  double eps;
  TG_MODULE(weight, bias, eps)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

// rms_norm over the last axis, or the last axes, of these sizes.
struct RMSNorm {
  explicit RMSNorm(std::int64_t size, double epsilon = 0x1p-23, Loc loc = Loc::current());
  explicit RMSNorm(const Shape& normalized, double epsilon = 0x1p-23, Loc loc = Loc::current());

  Parameter weight;
  double eps;
  TG_MODULE(weight, eps)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

// x [N, channels, ...]
struct GroupNorm {
  GroupNorm(std::int64_t groups, std::int64_t channels, double epsilon = 1e-5,
            Loc loc = Loc::current());

  std::int64_t groups;
  Parameter weight, bias;
  double eps;
  TG_MODULE(weight, bias, eps)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

// x [N, channels, L] or [N, channels, H, W]; weight and bias if `affine`.
struct InstanceNorm {
  explicit InstanceNorm(std::int64_t channels, double epsilon = 1e-5, bool affine = false,
                        Loc loc = Loc::current());

  std::int64_t channels;
  std::optional<Parameter> weight, bias;
  double eps;
  TG_MODULE(weight, bias, eps)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};
using InstanceNorm1d = InstanceNorm;
using InstanceNorm2d = InstanceNorm;

// x [N, channels], [N, channels, L] or [N, channels, H, W]. In training it normalises by the
// statistics of the batch and moves the running ones towards them by `momentum` (the variance
// unbiased); in use by the running ones (see is_training()). These are states, saved with
// checkpoints; an attached function shares its trainer's. Without `affine` there are no weight and
// bias; without `track_running_stats` no states, and the batch's own statistics serve in use, too.
struct BatchNorm {
  struct Options {
    double epsilon = 1e-5, momentum = 0.1;
    bool affine = true, track_running_stats = true;
  };
  explicit BatchNorm(std::int64_t channels, double epsilon = 1e-5, double momentum = 0.1,
                     Loc loc = Loc::current());
  BatchNorm(std::int64_t channels, const Options& options, Loc loc = Loc::current());

  std::optional<Parameter> weight, bias;
  std::optional<Buffer> running_mean, running_var;
  double eps, momentum;
  TG_MODULE(weight, bias, running_mean, running_var, eps, momentum)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};
using BatchNorm1d = BatchNorm;
using BatchNorm2d = BatchNorm;

}  // namespace tensorgrad::nn
