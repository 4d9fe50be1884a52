// SPDX-License-Identifier: MIT
// Layers for images [B, C, H, W] and signals [B, C, L], with the ops and options of
// functional/vision.h. Weights have the layout and the initial values of torch.nn.
#pragma once

#include <optional>

#include "tensorgrad/functional/vision.h"
#include "tensorgrad/nn/module.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// 2D convolution (torch.nn.Conv2d). The weight [out, in / groups, kH, kW] and the bias [out] are
/// initialized uniformly in +-1/sqrt(in / groups * kH * kW). See conv2d().
struct Conv2d {
  /// Creates the parameters. Throws ShapeError if `groups` does not divide both numbers of
  /// channels.
  Conv2d(std::int64_t in, std::int64_t out, Size2d kernel, const Conv2dOptions& options = {},
         bool with_bias = true, Loc loc = Loc::current());

  Conv2dOptions options;          ///< Options of the constructor.
  Parameter weight;               ///< [out, in / groups, kH, kW].
  std::optional<Parameter> bias;  ///< [out]. Unset without a bias.
  TG_MODULE(weight, bias)

  /// Returns conv2d() of `x`: [B, in, H, W] -> [B, out, Ho, Wo].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// 1D convolution (torch.nn.Conv1d). The weight [out, in / groups, k] and the bias [out] are
/// initialized uniformly in +-1/sqrt(in / groups * k). See conv1d().
struct Conv1d {
  /// Creates the parameters. Throws ShapeError if `groups` does not divide both numbers of
  /// channels.
  Conv1d(std::int64_t in, std::int64_t out, std::int64_t kernel, const Conv1dOptions& options = {},
         bool with_bias = true, Loc loc = Loc::current());

  Conv1dOptions options;          ///< Options of the constructor.
  Parameter weight;               ///< [out, in / groups, k].
  std::optional<Parameter> bias;  ///< [out]. Unset without a bias.
  TG_MODULE(weight, bias)

  /// Returns conv1d() of `x`: [B, in, L] -> [B, out, Lo].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// 2D transposed convolution (torch.nn.ConvTranspose2d). The weight [in, out / groups, kH, kW] and
/// the bias [out] are initialized uniformly in +-1/sqrt(out / groups * kH * kW). See
/// conv_transpose2d().
struct ConvTranspose2d {
  /// Creates the parameters. Throws ShapeError if `groups` does not divide both numbers of
  /// channels.
  ConvTranspose2d(std::int64_t in, std::int64_t out, Size2d kernel,
                  const ConvTranspose2dOptions& options = {}, bool with_bias = true,
                  Loc loc = Loc::current());

  ConvTranspose2dOptions options;  ///< Options of the constructor.
  Parameter weight;                ///< [in, out / groups, kH, kW].
  std::optional<Parameter> bias;   ///< [out]. Unset without a bias.
  TG_MODULE(weight, bias)

  /// Returns conv_transpose2d() of `x`: [B, in, H, W] -> [B, out, Ho, Wo].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// 1D transposed convolution (torch.nn.ConvTranspose1d). The weight [in, out / groups, k] and the
/// bias [out] are initialized uniformly in +-1/sqrt(out / groups * k). See conv_transpose1d().
struct ConvTranspose1d {
  /// Creates the parameters. Throws ShapeError if `groups` does not divide both numbers of
  /// channels.
  ConvTranspose1d(std::int64_t in, std::int64_t out, std::int64_t kernel,
                  const ConvTranspose1dOptions& options = {}, bool with_bias = true,
                  Loc loc = Loc::current());

  ConvTranspose1dOptions options;  ///< Options of the constructor.
  Parameter weight;                ///< [in, out / groups, k].
  std::optional<Parameter> bias;   ///< [out]. Unset without a bias.
  TG_MODULE(weight, bias)

  /// Returns conv_transpose1d() of `x`: [B, in, L] -> [B, out, Lo].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Max pooling (torch.nn.MaxPool2d). See max_pool2d().
struct MaxPool2d {
  /// Pools windows of `size`.
  explicit MaxPool2d(Size2d size, const MaxPool2dOptions& how = {}) : kernel(size), options(how) {}

  Size2d kernel;             ///< Size of a window.
  MaxPool2dOptions options;  ///< Options of the constructor.
  TG_MODULE()

  /// Returns the pooled images.
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Average pooling (torch.nn.AvgPool2d). See avg_pool2d().
struct AvgPool2d {
  /// Pools windows of `size`.
  explicit AvgPool2d(Size2d size, const AvgPool2dOptions& how = {}) : kernel(size), options(how) {}

  Size2d kernel;             ///< Size of a window.
  AvgPool2dOptions options;  ///< Options of the constructor.
  TG_MODULE()

  /// Returns the pooled images.
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Average pooling to a fixed output size (torch.nn.AdaptiveAvgPool2d). See adaptive_avg_pool2d().
struct AdaptiveAvgPool2d {
  /// Pools to an output of size `to`.
  explicit AdaptiveAvgPool2d(Size2d to) : size(to) {}

  Size2d size;  ///< Height and width of the output.
  TG_MODULE()

  /// Returns the pooled images: [B, C, H, W] -> [B, C, size.h, size.w].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Upsampling by integer factors (torch.nn.Upsample). See interpolate().
struct Upsample {
  /// Multiplies height and width by `times`.
  explicit Upsample(Size2d times, Interpolation how = Interpolation::kNearest, bool corners = false)
      : scale(times), mode(how), align_corners(corners) {}

  Size2d scale;        ///< Factors of height and width, at least 1.
  Interpolation mode;  ///< See interpolate().
  bool align_corners;  ///< See interpolate(). For kBilinear only.
  TG_MODULE()

  /// Returns the resized images: [B, C, H, W] -> [B, C, scale.h * H, scale.w * W].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Flattening of the axes `first` to `last` into one (torch.nn.Flatten). By default, [B, ...] ->
/// [B, n].
struct Flatten {
  /// Flattens the axes `from` to `to`, both included. Negative axes count from the end.
  explicit Flatten(int from = 1, int to = -1) : first(from), last(to) {}

  int first, last;  ///< Axes, both included; negative: from the end.
  TG_MODULE(first, last)

  /// Returns flatten(x, first, last).
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
