// SPDX-License-Identifier: MIT
// Convolution, pooling and resizing of images [B, C, H, W] and signals [B, C, L], as in
// torch.nn.functional. Tensors are f32, or f16 computed in f32; functions throw DtypeError for
// other dtypes. They throw ShapeError if shapes do not match or an option is out of range.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Height and width. Converts from one integer, which sets both. A floating-point number does not
/// compile.
struct Size2d {
  /// Sets height and width.
  template <std::integral T>
  Size2d(T both) : h(both), w(both) {}  // NOLINT(google-explicit-constructor)
  Size2d(std::int64_t height, std::int64_t width) : h(height), w(width) {}
  std::int64_t h;  ///< Height, for the axis before the last.
  std::int64_t w;  ///< Width, for the last axis.
};

// ---- convolution ------------------------------------------------------------------------------

/// Options of conv1d().
struct Conv1dOptions {
  std::int64_t stride = 1;    ///< Distance between the windows of adjacent outputs, at least 1.
  std::int64_t padding = 0;   ///< Number of zeros added on each side.
  std::int64_t dilation = 1;  ///< Distance between the elements of a window, at least 1.

  /// Number of groups of channels that are convolved independently. It divides the numbers of
  /// input and output channels. With one group per channel, the convolution is depthwise.
  std::int64_t groups = 1;
};

/// Options of conv2d(); see Conv1dOptions.
struct Conv2dOptions {
  Size2d stride = 1;        ///< Distance between the windows of adjacent outputs, at least 1.
  Size2d padding = 0;       ///< Number of zeros added on each side of an axis.
  Size2d dilation = 1;      ///< Distance between the elements of a window, at least 1.
  std::int64_t groups = 1;  ///< See Conv1dOptions::groups.
};

/// Returns a 2D convolution (cross-correlation, as in PyTorch). Shapes: x [B, Cin, H, W], weight
/// [Cout, Cin / groups, kH, kW] and bias [Cout]. The output height is (H + 2 padding - dilation
/// (kH - 1) - 1) / stride + 1, rounded down; the width is analogous. With one group, y[b, o, n, m]
/// is the sum over c, j and k of weight[o, c, j, k] *
/// x[b, c, n * stride + j * dilation - padding, m * stride + k * dilation - padding], plus bias[o].
Tensor conv2d(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
              const Conv2dOptions& options = {}, Loc loc = Loc::current());

/// Returns a 1D convolution: conv2d() along one axis. Shapes: x [B, Cin, L], weight
/// [Cout, Cin / groups, k] and bias [Cout].
Tensor conv1d(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
              const Conv1dOptions& options = {}, Loc loc = Loc::current());

/// Options of conv_transpose1d(). `stride`, `padding`, `groups` and `dilation` are those of the
/// convolution whose gradient it is (Conv1dOptions).
struct ConvTranspose1dOptions {
  std::int64_t stride = 1;   ///< Distance between the outputs of adjacent inputs, at least 1.
  std::int64_t padding = 0;  ///< Number of elements removed from each side of the output.

  /// Number of elements added to the end of the output. With a stride above 1, a convolution maps
  /// several input sizes to the same output size; this selects one of them. It must be less than
  /// the larger of stride and dilation.
  std::int64_t output_padding = 0;

  std::int64_t groups = 1;    ///< See Conv1dOptions::groups.
  std::int64_t dilation = 1;  ///< Distance between the elements of a window, at least 1.
};

/// Options of conv_transpose2d(); see ConvTranspose1dOptions.
struct ConvTranspose2dOptions {
  Size2d stride = 1;          ///< Distance between the outputs of adjacent inputs, at least 1.
  Size2d padding = 0;         ///< Number of elements removed from each side of the output.
  Size2d output_padding = 0;  ///< See ConvTranspose1dOptions::output_padding.
  std::int64_t groups = 1;    ///< See Conv1dOptions::groups.
  Size2d dilation = 1;        ///< Distance between the elements of a window, at least 1.
};

/// Returns a 2D transposed convolution: the gradient of conv2d() with respect to its input, plus
/// the bias. Shapes: x [B, Cin, H, W], weight [Cin, Cout / groups, kH, kW] and bias [Cout]. The
/// output height is (H - 1) stride - 2 padding + dilation (kH - 1) + output_padding + 1; the width
/// is analogous.
Tensor conv_transpose2d(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
                        const ConvTranspose2dOptions& options = {}, Loc loc = Loc::current());

/// Returns a 1D transposed convolution: conv_transpose2d() along one axis. Shapes: x [B, Cin, L],
/// weight [Cin, Cout / groups, k] and bias [Cout].
Tensor conv_transpose1d(Tensor x, Tensor weight, std::optional<Tensor> bias = std::nullopt,
                        const ConvTranspose1dOptions& options = {}, Loc loc = Loc::current());

// ---- pooling ----------------------------------------------------------------------------------

/// Stride of a pooling window: one number, or `{height, width}`. Unset: the kernel size.
struct PoolStride : std::optional<Size2d> {
  using std::optional<Size2d>::optional;
  /// Sets both strides.
  PoolStride(std::int64_t height, std::int64_t width)
      : std::optional<Size2d>(Size2d(height, width)) {}
  PoolStride(const std::optional<Size2d>& stride)  // NOLINT(google-explicit-constructor)
      : std::optional<Size2d>(stride) {}
};

/// Stride of a 1D pooling window. Unset: the kernel size. A fraction does not compile.
struct PoolStride1d : std::optional<std::int64_t> {
  PoolStride1d() = default;
  /// Sets the stride.
  template <std::integral T>
  PoolStride1d(T stride) : std::optional<std::int64_t>(stride) {}  // NOLINT(*-explicit-*)
};

/// Options of max_pool1d().
struct MaxPool1dOptions {
  PoolStride1d stride = {};   ///< Distance between windows; unset: the kernel size.
  std::int64_t padding = 0;   ///< Elements added on each side, at most half of the kernel size.
  std::int64_t dilation = 1;  ///< Distance between the elements of a window, at least 1.
};

/// Options of max_pool2d(); see MaxPool1dOptions.
struct MaxPool2dOptions {
  PoolStride stride = {};  ///< Distance between windows; unset: the kernel size.
  Size2d padding = 0;      ///< Elements added on each side, at most half of the kernel size.
  Size2d dilation = 1;     ///< Distance between the elements of a window, at least 1.
};

/// Returns the maximum of each window of `kernel` elements. NaN counts as the maximum; padding
/// never does. The gradient goes to the first maximum in row-major order. `x` is [B, C, H, W] for
/// max_pool2d() and [B, C, L] for max_pool1d().
Tensor max_pool2d(Tensor x, Size2d kernel, const MaxPool2dOptions& options = {},
                  Loc loc = Loc::current());
Tensor max_pool1d(Tensor x, std::int64_t kernel, const MaxPool1dOptions& options = {},
                  Loc loc = Loc::current());

/// Options of avg_pool1d().
struct AvgPool1dOptions {
  PoolStride1d stride = {};  ///< Distance between windows; unset: the kernel size.
  std::int64_t padding = 0;  ///< Zeros added on each side, at most half of the kernel size.

  /// Divides by the kernel size. If false, divides by the number of elements that are not padding.
  bool count_include_pad = true;
};

/// Options of avg_pool2d(); see AvgPool1dOptions.
struct AvgPool2dOptions {
  PoolStride stride = {};         ///< Distance between windows; unset: the kernel size.
  Size2d padding = 0;             ///< Zeros added on each side, at most half of the kernel size.
  bool count_include_pad = true;  ///< See AvgPool1dOptions::count_include_pad.
};

/// Returns the mean of each window of `kernel` elements. `x` is [B, C, H, W] for avg_pool2d() and
/// [B, C, L] for avg_pool1d().
Tensor avg_pool2d(Tensor x, Size2d kernel, const AvgPool2dOptions& options = {},
                  Loc loc = Loc::current());
Tensor avg_pool1d(Tensor x, std::int64_t kernel, const AvgPool1dOptions& options = {},
                  Loc loc = Loc::current());

/// Pools an input of any size to `size`: returns the mean or the maximum of each bin. Along an axis
/// with n bins, bin i covers the elements from floor(i H / n) up to, but not including,
/// ceil((i + 1) H / n).
Tensor adaptive_avg_pool2d(Tensor x, Size2d size, Loc loc = Loc::current());
Tensor adaptive_max_pool2d(Tensor x, Size2d size, Loc loc = Loc::current());

// ---- resizing ---------------------------------------------------------------------------------

/// Method of interpolate().
enum class Interpolation {
  kNearest,  ///< Copies one pixel, like the "nearest" mode of PyTorch.
  kBilinear  ///< Interpolates linearly between the nearest pixels of both axes.
};

/// Returns images resized to `size`: [B, C, H, W] -> [B, C, size.h, size.w]. For row i, kNearest
/// reads row floor(i H / size.h). kBilinear interpolates at (i + 1/2) H / size.h - 1/2, clamped to
/// the image, or with `align_corners` at i (H - 1) / (size.h - 1). Columns are analogous. Throws
/// UserError if `align_corners` is set for kNearest.
Tensor interpolate(Tensor x, Size2d size, Interpolation mode = Interpolation::kNearest,
                   bool align_corners = false, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
