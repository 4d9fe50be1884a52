// SPDX-License-Identifier: MIT
// Windows as views, and their adjoint.
#include "ops/window.h"

#include <limits>

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

void check_axis_of(const WindowAxis& window, std::int64_t length, const char* axis) {
  const auto refuse = [&](const std::string& what, std::int64_t given, std::int64_t least) {
    shape_error(what + " must be at least " + std::to_string(least) + ", got " +
                std::to_string(given));
  };
  constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
  if (window.size < 1) refuse("kernel", window.size, 1);
  if (window.step < 1) refuse("stride", window.step, 1);
  if (window.dilation < 1) refuse("dilation", window.dilation, 1);
  if (window.padding < 0) refuse("padding", window.padding, 0);
  if (window.padding > kMaxInt32 || window.dilation > kMaxInt32)
    shape_error("padding or dilation is above 2^31-1");
  if (window.reach() + 1 > length + 2 * window.padding) {
    shape_error("a kernel of " + std::to_string(window.size) +
                (window.dilation > 1 ? " with dilation " + std::to_string(window.dilation) : "") +
                " is larger than the " + axis + " of " + std::to_string(length) +
                (window.padding > 0 ? " with padding " + std::to_string(window.padding) : ""));
  }
}

}  // namespace

Windows Windows::of(const Attrs& attrs, const std::vector<std::int64_t>& kernel) {
  const auto& stride = attrs.list("stride");
  const auto& padding = attrs.list("padding");
  const auto& dilation = attrs.list("dilation");
  if (stride.size() != 2 || padding.size() != 2 || dilation.size() != 2 || kernel.size() != 2) {
    shape_error("kernel, stride, padding and dilation must be pairs");
  }
  return {{kernel[0], stride[0], padding[0], dilation[0]},
          {kernel[1], stride[1], padding[1], dilation[1]}};
}

void Windows::check(std::int64_t height, std::int64_t width) const {
  check_axis_of(h, height, "height");
  check_axis_of(w, width, "width");
}

namespace op {

Expr padded(Expr x, const Windows& windows) {
  if (windows.h.padding == 0 && windows.w.padding == 0) return x;
  const std::vector<std::int64_t> amount = {0, 0, windows.h.padding, windows.w.padding};
  return pad(x, amount, amount);
}

Expr windows_of(Expr x, const Windows& windows) {
  const WindowAxis &h = windows.h, &w = windows.w;
  return unfold(unfold(x, 2, h.size, h.step, h.dilation), 3, w.size, w.step, w.dilation);
}

Expr add_windows(Expr x, const Windows& windows, std::int64_t height, std::int64_t width) {
  const WindowAxis &h = windows.h, &w = windows.w;
  const Shape from = x.shape();
  if (windows.tiles({from[0], from[1], height, width})) {
    return reshape(permute(x, {0, 1, 2, 4, 3, 5}), {from[0], from[1], height, width});
  }
  const Expr rows = fold(x, 3, width + 2 * w.padding, w.step, w.dilation);
  const Expr all = fold(rows, 2, height + 2 * h.padding, h.step, h.dilation);
  return slice(all, {0, 0, h.padding, w.padding},
               {from[0], from[1], h.padding + height, w.padding + width});
}

}  // namespace op
}  // namespace tensorgrad::inline TENSORGRAD_ABI
