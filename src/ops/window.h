// SPDX-License-Identifier: MIT
// Windows over the last two axes of [B, C, H, W]: what convolutions and pools share.
#pragma once

#include <cstdint>

#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Along one axis: element j of window n lies at n * step + j * dilation - padding; what lies
// outside of the axis is zero.
struct WindowAxis {
  std::int64_t size = 1, step = 1, padding = 0, dilation = 1;

  [[nodiscard]] std::int64_t reach() const { return (size - 1) * dilation; }
  // Windows of an axis that long; at least 1 once check() has passed.
  [[nodiscard]] std::int64_t count(std::int64_t length) const {
    return (length + 2 * padding - reach() - 1) / step + 1;
  }
  // Windows lie side by side, cover the axis and nothing else.
  [[nodiscard]] bool tiles(std::int64_t length) const {
    return size == step && padding == 0 && dilation == 1 && length % size == 0;
  }
};

struct Windows {
  WindowAxis h, w;

  // Of attrs stride, padding, dilation, each [h, w], and a kernel [h, w].
  static Windows of(const Attrs& attrs, const std::vector<std::int64_t>& kernel);
  // Throws ShapeError where a number is too small, or a window larger than what it goes over.
  void check(std::int64_t height, std::int64_t width) const;
  [[nodiscard]] std::int64_t taps() const { return h.size * w.size; }
  [[nodiscard]] bool tiles(const Shape& x) const { return h.tiles(x[2]) && w.tiles(x[3]); }
};

namespace op {

// x with the zeros that its windows reach around it.
Ex padded(Ex x, const Windows& windows);
// [B, C, H, W] (padded already) -> [B, C, Ho, Wo, kh, kw].
Ex windows_of(Ex x, const Windows& windows);
// The adjoint of padded() and windows_of(): [B, C, Ho, Wo, kh, kw] -> [B, C, height, width].
Ex add_windows(Ex x, const Windows& windows, std::int64_t height, std::int64_t width);

}  // namespace op
}  // namespace tensorgrad::inline TENSORGRAD_ABI
