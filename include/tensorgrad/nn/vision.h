// SPDX-License-Identifier: MIT
// Layers for images [B, C, H, W] and signals [B, C, L]; ops and options are those of vision.h.
// Weights are laid out and initialised as PyTorch's.
#pragma once

#include <optional>

#include "tensorgrad/functional/vision.h"
#include "tensorgrad/nn/module.h"

namespace tensorgrad::nn {

// weight [out, in / groups, kH, kW], bias [out], both uniform in +-1/sqrt(in / groups * kH * kW).
// Throws ShapeError where `groups` does not divide the channels.
struct Conv2d {
  Conv2d(std::int64_t in, std::int64_t out, Size2d kernel, const Conv2dOptions& options = {},
         bool with_bias = true, Loc loc = Loc::current());

  Conv2dOptions options;
  Parameter weight;
  std::optional<Parameter> bias;
  TG_MODULE(weight, bias)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

// weight [out, in / groups, k], bias [out], likewise.
struct Conv1d {
  Conv1d(std::int64_t in, std::int64_t out, std::int64_t kernel, const Conv1dOptions& options = {},
         bool with_bias = true, Loc loc = Loc::current());

  Conv1dOptions options;
  Parameter weight;
  std::optional<Parameter> bias;
  TG_MODULE(weight, bias)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

// weight [in, out / groups, kH, kW], bias [out], both uniform in +-1/sqrt(out / groups * kH * kW),
// as PyTorch has it.
struct ConvTranspose2d {
  ConvTranspose2d(std::int64_t in, std::int64_t out, Size2d kernel,
                  const ConvTranspose2dOptions& options = {}, bool with_bias = true,
                  Loc loc = Loc::current());

  ConvTranspose2dOptions options;
  Parameter weight;
  std::optional<Parameter> bias;
  TG_MODULE(weight, bias)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

// weight [in, out / groups, k], bias [out], likewise.
struct ConvTranspose1d {
  ConvTranspose1d(std::int64_t in, std::int64_t out, std::int64_t kernel,
                  const ConvTranspose1dOptions& options = {}, bool with_bias = true,
                  Loc loc = Loc::current());

  ConvTranspose1dOptions options;
  Parameter weight;
  std::optional<Parameter> bias;
  TG_MODULE(weight, bias)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

struct MaxPool2d {
  explicit MaxPool2d(Size2d size, const MaxPool2dOptions& how = {}) : kernel(size), options(how) {}
  Size2d kernel;
  MaxPool2dOptions options;
  TG_MODULE()
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

struct AvgPool2d {
  explicit AvgPool2d(Size2d size, const AvgPool2dOptions& how = {}) : kernel(size), options(how) {}
  Size2d kernel;
  AvgPool2dOptions options;
  TG_MODULE()
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

struct AdaptiveAvgPool2d {
  explicit AdaptiveAvgPool2d(Size2d to) : size(to) {}
  Size2d size;
  TG_MODULE()
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

// Height and width times `scale`.
struct Upsample {
  explicit Upsample(Size2d times, Interpolation how = Interpolation::kNearest, bool corners = false)
      : scale(times), mode(how), align_corners(corners) {}
  Size2d scale;
  Interpolation mode;
  bool align_corners;
  TG_MODULE()
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

// [B, ...] -> [B, n]: axes first..last become one.
struct Flatten {
  explicit Flatten(int from = 1, int to = -1) : first(from), last(to) {}
  int first, last;
  TG_MODULE(first, last)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::nn
