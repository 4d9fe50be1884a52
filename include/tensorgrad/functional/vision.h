// SPDX-License-Identifier: MIT
// Convolution, pooling and resizing of f32 images [B, C, H, W] and signals [B, C, L], as
// torch.nn.functional has them. What does not fit throws ShapeError, another dtype DtypeError.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// A number for each of height and width; one number stands for both. A fraction does not compile.
struct Pair {
  template <std::integral T>
  Pair(T both) : h(both), w(both) {}  // NOLINT(google-explicit-constructor)
  Pair(std::int64_t height, std::int64_t width) : h(height), w(width) {}
  std::int64_t h, w;
};

// ---- convolution ------------------------------------------------------------------------------

// Zeros are added on both sides by `padding`. Channels are cut into `groups` that do not see each
// other; as many groups as channels make the convolution depthwise.
struct Conv1dOptions {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
struct Conv2dOptions {
  Pair stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
};
// y[b,o,n,m] = bias[o] + sum over c, j, k of weight[o,c,j,k] * x[b, c, n * stride + j * dilation -
// padding, m * stride + k * dilation - padding]; x [B, Cin, H, W], weight [Cout, Cin / groups, kH,
// kW], bias [Cout]. H becomes (H + 2 padding - dilation (kH - 1) - 1) / stride + 1.
Tensor conv2d(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
              const Conv2dOptions& options = {}, Loc loc = Loc::current());
// The same along one axis: x [B, Cin, L], weight [Cout, Cin / groups, k].
Tensor conv1d(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
              const Conv1dOptions& options = {}, Loc loc = Loc::current());

// `output_padding` picks one of the sizes that a convolution would take to that of x; it is less
// than stride or dilation.
struct ConvTranspose1dOptions {
  std::int64_t stride = 1, padding = 0, output_padding = 0, groups = 1, dilation = 1;
};
struct ConvTranspose2dOptions {
  Pair stride = 1, padding = 0, output_padding = 0;
  std::int64_t groups = 1;
  Pair dilation = 1;
};
// The gradient of conv2d with respect to its x, plus bias: x [B, Cin, H, W], weight [Cin, Cout /
// groups, kH, kW], bias [Cout]. H becomes (H - 1) stride - 2 padding + dilation (kH - 1) +
// output_padding + 1.
Tensor conv_transpose2d(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
                        const ConvTranspose2dOptions& options = {}, Loc loc = Loc::current());
// The same along one axis: x [B, Cin, L], weight [Cin, Cout / groups, k].
Tensor conv_transpose1d(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
                        const ConvTranspose1dOptions& options = {}, Loc loc = Loc::current());

// ---- pooling ----------------------------------------------------------------------------------

// The stride of windows that lie side by side.
inline constexpr std::int64_t kKernel = std::numeric_limits<std::int64_t>::min();
// Windows of `kernel` elements; stride is the kernel's size where it is not given. Padding is at
// most half of the kernel.
struct MaxPool1dOptions {
  std::int64_t stride = kKernel;
  std::int64_t padding = 0, dilation = 1;
};
struct MaxPool2dOptions {
  Pair stride = kKernel;
  Pair padding = 0, dilation = 1;
};
// The largest element of each window; NaN wins, padding never does. The gradient goes to the first
// of equals, row by row.
Tensor max_pool2d(Tensor x, Pair kernel, const MaxPool2dOptions& options = {},
                  Loc loc = Loc::current());
Tensor max_pool1d(Tensor x, std::int64_t kernel, const MaxPool1dOptions& options = {},
                  Loc loc = Loc::current());

struct AvgPool1dOptions {
  std::int64_t stride = kKernel;
  std::int64_t padding = 0;
  bool count_include_pad = true;  // divide by the kernel's size, not by the elements inside of x
};
struct AvgPool2dOptions {
  Pair stride = kKernel;
  Pair padding = 0;
  bool count_include_pad = true;
};
// The mean of each window.
Tensor avg_pool2d(Tensor x, Pair kernel, const AvgPool2dOptions& options = {},
                  Loc loc = Loc::current());
Tensor avg_pool1d(Tensor x, std::int64_t kernel, const AvgPool1dOptions& options = {},
                  Loc loc = Loc::current());

// Pools to `size` whatever the size of x: bin i of n goes from floor(i H / n) to ceil((i + 1) H /
// n).
Tensor adaptive_avg_pool2d(Tensor x, Pair size, Loc loc = Loc::current());
Tensor adaptive_max_pool2d(Tensor x, Pair size, Loc loc = Loc::current());

// ---- resizing ---------------------------------------------------------------------------------

enum class Interpolation { kNearest, kBilinear };
// x [B, C, H, W] -> [B, C, size.h, size.w]. Nearest takes floor(i H / size.h). Bilinear weighs the
// neighbours of (i + 1/2) H / size.h - 1/2, or with align_corners of i (H - 1) / (size.h - 1).
Tensor interpolate(Tensor x, Pair size, Interpolation mode = Interpolation::kNearest,
                   bool align_corners = false, Loc loc = Loc::current());

}  // namespace tensorgrad
