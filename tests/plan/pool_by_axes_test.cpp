// SPDX-License-Identifier: MIT
// Pooling with large overlapping windows is computed one axis after the other. Values and gradients
// match the definition, with ties, infinities and NaN. The work is proportional to the sides of the
// windows, not to their area.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernel/program.h"
#include "support/graph_builder.h"
#include "tensorgrad/tensorgrad.h"

#include <gtest/gtest.h>

namespace tensorgrad::testing {
namespace {

struct PoolCase {
  std::int64_t height = 12, width = 14;
  std::int64_t kernel_h = 5, kernel_w = 7, stride_h = 1, stride_w = 1, pad_h = 2, pad_w = 3;
  std::int64_t dilation = 1;
};

const std::vector<PoolCase>& pool_cases() {
  static const std::vector<PoolCase> all = {
      {},
      {.stride_h = 2, .stride_w = 3},
      {.pad_h = 0, .pad_w = 0},
      {.kernel_h = 4, .kernel_w = 5, .stride_w = 2, .pad_h = 1, .pad_w = 2, .dilation = 2},
      {.height = 20, .width = 9, .kernel_h = 9, .kernel_w = 3, .pad_h = 4, .pad_w = 1},
  };
  return all;
}

struct Pooled {
  Values y, dx;
};

// Computes the max pooling of x [1, 1, H, W] and its gradient by definition, with dy[n] = n + 1.
// The first of equal elements is the maximum; a NaN precedes all others.
Pooled max_by_definition(const PoolCase& c, const Values& x) {
  Pooled out;
  out.dx.assign(x.size(), 0);
  const auto count = [&](std::int64_t length, std::int64_t kernel, std::int64_t stride,
                         std::int64_t pad) {
    return (length + 2 * pad - (kernel - 1) * c.dilation - 1) / stride + 1;
  };
  for (std::int64_t i = 0; i < count(c.height, c.kernel_h, c.stride_h, c.pad_h); ++i) {
    for (std::int64_t j = 0; j < count(c.width, c.kernel_w, c.stride_w, c.pad_w); ++j) {
      std::int64_t best = -1;
      for (std::int64_t a = 0; a < c.kernel_h; ++a) {
        for (std::int64_t b = 0; b < c.kernel_w; ++b) {
          const std::int64_t row = i * c.stride_h + a * c.dilation - c.pad_h,
                             col = j * c.stride_w + b * c.dilation - c.pad_w;
          if (row < 0 || row >= c.height || col < 0 || col >= c.width) continue;
          const std::int64_t at = row * c.width + col;
          const double v = x[static_cast<std::size_t>(at)];
          const double most = best < 0 ? 0 : x[static_cast<std::size_t>(best)];
          if (best < 0 || (!std::isnan(most) && (std::isnan(v) || v > most))) best = at;
        }
      }
      out.y.push_back(x[static_cast<std::size_t>(best)]);
      out.dx[static_cast<std::size_t>(best)] += static_cast<double>(out.y.size());
    }
  }
  return out;
}

Tensor pooled(const PoolCase& c, const Tensor& x) {
  return max_pool2d(x, {c.kernel_h, c.kernel_w},
                    {.stride = Size2d{c.stride_h, c.stride_w},
                     .padding = {c.pad_h, c.pad_w},
                     .dilation = c.dilation});
}

// Returns few different values, so that most windows have ties. If `special`, some are -inf or NaN.
Values elements(const PoolCase& c, bool special) {
  Draw draw(7);
  Values x;
  for (std::int64_t i = 0; i < c.height * c.width; ++i) {
    x.push_back(static_cast<double>(draw.whole(0, 2)));
    if (!special) continue;
    if (i % c.width < c.width / 2) x.back() = -std::numeric_limits<double>::infinity();
    if (i == c.width * c.height - 3) x.back() = std::numeric_limits<double>::quiet_NaN();
  }
  return x;
}

void expect_as_defined(Where where) {
  for (const PoolCase& c : pool_cases()) {
    for (const bool special : {false, true}) {
      const Values values = elements(c, special);
      const Pooled want = max_by_definition(c, values);
      GraphBuilder s;
      const Tensor x = s.input({1, 1, c.height, c.width}, f32, values);
      const Tensor y = pooled(c, x);
      s.output("y", y);
      const Tensor dy = reshape(cast(arange(y.size(2) * y.size(3)), f32), y.shape()) + 1.0;
      s.output("dx", grad(sum(y * dy), {x})[0]);
      const ValueMap got = run_graph(s.graph(), s.leaves, where);
      const auto same = [](const Values& a, const Values& b) {
        ASSERT_EQ(a.size(), b.size());
        for (std::size_t i = 0; i < a.size(); ++i)
          EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
              << i << ": " << a[i] << ", expected " << b[i];
      };
      same(got.at("y"), want.y);
      same(got.at("dx"), want.dx);
    }
  }
}

TEST(PoolByAxes, matches_the_definition) { expect_as_defined(Where::kCpu); }
TEST(PoolByAxes, matches_the_definition_on_webgpu) { expect_as_defined(Where::kWebGpu); }

TEST(PoolByAxes, averages_match_the_windows) {
  GraphBuilder s;
  const Tensor x = s.input({1, 2, 12, 14});
  s.output("difference", max(abs(avg_pool2d(x, {5, 7}, {.stride = Size2d{1, 1}}) -
                                 mean(unfold(unfold(x, 2, 5, 1), 3, 7, 1), {4, 5}))));
  EXPECT_LT(run_graph(s.graph(), s.leaves, Where::kCpu).at("difference")[0], 1e-6);
}

std::int64_t operations(std::int64_t kernel, bool average) {
  GraphBuilder s;
  const Tensor x = s.input({1, 1, 64, 64});
  const std::int64_t pad = kernel / 2;
  const Tensor y = average ? avg_pool2d(x, kernel, {.stride = Size2d{1}, .padding = pad})
                           : max_pool2d(x, kernel, {.stride = Size2d{1}, .padding = pad});
  s.output("dx", grad(sum(square(y)), {x})[0]);
  std::int64_t total = 0;
  for (const Launch& launch : compile_for_test(s.graph(), 8).program.launches)
    total += launch.flops;
  return total;
}

TEST(PoolByAxes, work_grows_with_the_side_of_the_window) {
  for (const bool average : {false, true}) {
    const std::int64_t some = operations(15, average), twice = operations(31, average);
    EXPECT_GT(some, 0);
    EXPECT_LT(static_cast<double>(twice), 2.4 * static_cast<double>(some)) << average;
  }
}

}  // namespace
}  // namespace tensorgrad::testing
