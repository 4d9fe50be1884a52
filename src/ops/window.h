// SPDX-License-Identifier: MIT
// Windows over the last two axes of [B, C, H, W], shared by convolutions and pooling.
#pragma once

#include <cstdint>

#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Windows along one axis. Element j of window n is at n * step + j * dilation - padding. Elements
// outside the axis are zero.
struct WindowAxis {
  std::int64_t size = 1, step = 1, padding = 0, dilation = 1;

  [[nodiscard]] std::int64_t reach() const { return (size - 1) * dilation; }
  // Returns the number of windows along an axis of this length; at least 1 if check() passes.
  [[nodiscard]] std::int64_t count(std::int64_t length) const {
    return (length + 2 * padding - reach() - 1) / step + 1;
  }
  // True if the windows partition the axis: contiguous, without overlap or remainder.
  [[nodiscard]] bool tiles(std::int64_t length) const {
    return size == step && padding == 0 && dilation == 1 && length % size == 0;
  }
};

struct Windows {
  WindowAxis h, w;

  // Creates windows from the attrs stride, padding and dilation and a kernel, each [h, w].
  static Windows of(const Attrs& attrs, const std::vector<std::int64_t>& kernel);
  // Throws ShapeError if a number is too small, or a window is larger than the padded axis.
  void check(std::int64_t height, std::int64_t width) const;
  [[nodiscard]] std::int64_t taps() const { return h.size * w.size; }
  [[nodiscard]] bool tiles(const Shape& x) const { return h.tiles(x[2]) && w.tiles(x[3]); }
};

namespace op {

// Pads x with the zeros that its windows read.
Expr padded(Expr x, const Windows& windows);
// Returns the windows of a padded tensor: [B, C, H, W] -> [B, C, Ho, Wo, kh, kw].
Expr windows_of(Expr x, const Windows& windows);
// Adjoint of padded() and windows_of(): [B, C, Ho, Wo, kh, kw] -> [B, C, height, width].
Expr add_windows(Expr x, const Windows& windows, std::int64_t height, std::int64_t width);

}  // namespace op
}  // namespace tensorgrad::inline TENSORGRAD_ABI
