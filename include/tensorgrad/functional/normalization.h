// SPDX-License-Identifier: MIT
// Normalization functions. They accept f32 and f16 tensors and return the dtype of `x`, unless a
// comment says otherwise. They throw ShapeError if shapes do not match.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns (x - mean) / sqrt(var + eps) * weight + bias, with the mean and the biased variance over
/// the last axes (Ba, Kiros and Hinton 2016). `normalized` holds the sizes of these axes, which is
/// also the shape of `weight` and `bias`; by default, normalizes over the last axis.
Tensor layer_norm(Tensor x, std::optional<Tensor> weight = std::nullopt,
                  std::optional<Tensor> bias = std::nullopt, double eps = 1e-5,
                  Loc loc = Loc::current());
Tensor layer_norm(Tensor x, const Shape& normalized, std::optional<Tensor> weight = std::nullopt,
                  std::optional<Tensor> bias = std::nullopt, double eps = 1e-5,
                  Loc loc = Loc::current());

/// Returns x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019). The mean is over the last
/// axes, whose sizes are the shape of `weight`. Without a weight, it is over the last axis.
Tensor rms_norm(Tensor x, std::optional<Tensor> weight = std::nullopt, double eps = 0x1p-23,
                Loc loc = Loc::current());

/// Normalizes each group of C / groups adjacent channels of each example of `x` [N, C, ...], as
/// layer_norm() does (Wu and He 2018). `weight` and `bias` are [C]. Throws ShapeError if `groups`
/// does not divide C.
Tensor group_norm(Tensor x, std::int64_t groups, std::optional<Tensor> weight = std::nullopt,
                  std::optional<Tensor> bias = std::nullopt, double eps = 1e-5,
                  Loc loc = Loc::current());

/// Normalizes each channel of each example of `x` [N, C, ...]: group_norm() with C groups.
Tensor instance_norm(Tensor x, std::optional<Tensor> weight = std::nullopt,
                     std::optional<Tensor> bias = std::nullopt, double eps = 1e-5,
                     Loc loc = Loc::current());

/// Returns the mean and the biased variance of each channel of `x` [N, C, ...], over all other
/// axes. Both are f32 [C].
std::pair<Tensor, Tensor> batch_statistics(Tensor x, Loc loc = Loc::current());

/// Returns (x - mean) / sqrt(var + eps) * weight + bias for `x` [N, C, ...], with operands [C] for
/// each channel (Ioffe and Szegedy 2015). Pass the result of batch_statistics(), or running
/// statistics. nn::BatchNorm maintains running statistics.
Tensor batch_norm(Tensor x, Tensor mean, Tensor var, std::optional<Tensor> weight = std::nullopt,
                  std::optional<Tensor> bias = std::nullopt, double eps = 1e-5,
                  Loc loc = Loc::current());

/// Returns x / max(|x|, eps), with the Euclidean norm |x| along an axis. If the norm is less than
/// `eps`, it counts as a constant for the gradient.
Tensor normalize(Tensor x, int axis = 1, double eps = 1e-12, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
