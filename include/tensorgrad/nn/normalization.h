// SPDX-License-Identifier: MIT
// Normalization layers, as in torch.nn. Weights start as 1 and biases as 0.
#pragma once

#include "tensorgrad/nn/module.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Layer normalization (torch.nn.LayerNorm). See layer_norm().
struct LayerNorm {
  /// Normalizes over the last axis, of size `size`, or over the last axes, of the sizes
  /// `normalized`.
  explicit LayerNorm(std::int64_t size, double epsilon = 1e-5, bool with_bias = true,
                     Loc loc = Loc::current());
  explicit LayerNorm(const Shape& normalized, double epsilon = 1e-5, bool with_bias = true,
                     Loc loc = Loc::current());

  Parameter weight;               ///< [size], or the shape `normalized`.
  std::optional<Parameter> bias;  ///< As `weight`. Unset without a bias.
  double eps;                     ///< Added to the variance.
  TG_MODULE(weight, bias, eps)

  /// Returns layer_norm() of `x`, in the shape of `x`.
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Root mean square normalization (torch.nn.RMSNorm). See rms_norm().
struct RMSNorm {
  /// Normalizes over the last axis, of size `size`, or over the last axes, of the sizes
  /// `normalized`.
  explicit RMSNorm(std::int64_t size, double epsilon = 0x1p-23, Loc loc = Loc::current());
  explicit RMSNorm(const Shape& normalized, double epsilon = 0x1p-23, Loc loc = Loc::current());

  Parameter weight;  ///< [size], or the shape `normalized`.
  double eps;        ///< Added to the mean square.
  TG_MODULE(weight, eps)

  /// Returns rms_norm() of `x`, in the shape of `x`.
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Group normalization (torch.nn.GroupNorm). See group_norm().
struct GroupNorm {
  /// Creates the parameters. Calls throw ShapeError if `groups` does not divide `channels`.
  GroupNorm(std::int64_t groups, std::int64_t channels, double epsilon = 1e-5,
            Loc loc = Loc::current());

  std::int64_t groups;     ///< Number of groups of adjacent channels.
  Parameter weight, bias;  ///< [channels].
  double eps;              ///< Added to the variance.
  TG_MODULE(weight, bias, eps)

  /// Returns group_norm() of `x` [N, channels, ...].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Instance normalization (torch.nn.InstanceNorm1d and InstanceNorm2d). See instance_norm().
struct InstanceNorm {
  /// Creates a weight and a bias if `affine`.
  explicit InstanceNorm(std::int64_t channels, double epsilon = 1e-5, bool affine = false,
                        Loc loc = Loc::current());

  std::int64_t channels;                  ///< Number of channels.
  std::optional<Parameter> weight, bias;  ///< [channels]. Set if `affine` is.
  double eps;                             ///< Added to the variance.
  TG_MODULE(weight, bias, eps)

  /// Returns instance_norm() of `x`: [N, channels, L] or [N, channels, H, W].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Alias with the name that PyTorch uses.
using InstanceNorm1d = InstanceNorm;
using InstanceNorm2d = InstanceNorm;

/// Batch normalization (torch.nn.BatchNorm1d and BatchNorm2d). During training, normalizes by the
/// statistics of the batch and updates the running statistics: running = (1 - momentum) * running +
/// momentum * batch, with the unbiased variance. In evaluation mode, normalizes by the running
/// statistics (see is_training()). These are states: checkpoints contain them, and attached
/// functions share those of their trainer.
struct BatchNorm {
  /// Options of the layer.
  struct Options {
    double epsilon = 1e-5;  ///< Added to the variance.
    double momentum = 0.1;  ///< Share of the batch in the running statistics.
    bool affine = true;     ///< Adds a weight and a bias.

    /// Adds running statistics. Without them, evaluation mode also normalizes by the statistics of
    /// the batch.
    bool track_running_stats = true;
  };

  /// Creates the parameters, and running statistics that start as mean 0 and variance 1.
  explicit BatchNorm(std::int64_t channels, double epsilon = 1e-5, double momentum = 0.1,
                     Loc loc = Loc::current());
  BatchNorm(std::int64_t channels, const Options& options, Loc loc = Loc::current());

  std::optional<Parameter> weight, bias;            ///< [channels]. Set if Options::affine is.
  std::optional<Buffer> running_mean, running_var;  ///< [channels]. Set if they are tracked.
  double eps;                                       ///< See Options::epsilon.
  double momentum;                                  ///< See Options::momentum.
  TG_MODULE(weight, bias, running_mean, running_var, eps, momentum)

  /// Returns batch_norm() of `x`: [N, channels], [N, channels, L] or [N, channels, H, W]. During
  /// training, throws ShapeError if a channel has only one value.
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Alias with the name that PyTorch uses.
using BatchNorm1d = BatchNorm;
using BatchNorm2d = BatchNorm;

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
