// SPDX-License-Identifier: MIT
// Literal expected values. Other tests compare devices with the interpreter on the same graph, so
// they cannot notice if a function is composed of the wrong ops.
#include <cmath>
#include <limits>

#include "op_cases.h"
#include "support/sanitized.h"

namespace tensorgrad::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class ValuesOn : public ::testing::TestWithParam<Where> {
 protected:
  static void expect_values(GraphBuilder& s, const ValueMap& want, double tolerance = 1e-6) {
    expect_close(s.graph(), run_graph(s.graph(), s.leaves, GetParam()), want, tolerance,
                 to_string(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(cpu, ValuesOn, ::testing::Values(Where::kCpu));
INSTANTIATE_TEST_SUITE_P(webgpu, ValuesOn, ::testing::Values(Where::kWebGpu));

TEST_P(ValuesOn, of_integers_with_numbers) {
  GraphBuilder s;
  const Tensor i = s.input({4}, i32, {-7, 3, 9, 2});
  s.output("half", i / 2);
  s.output("of", 18 / i);
  s.output("less", 1 - i);
  s.output("few", i < 3);
  s.output("many", 3 < i);
  expect_values(s, {{"half", {-3, 1, 4, 1}},
                    {"of", {-2, 6, 2, 9}},
                    {"less", {8, -2, -8, -1}},
                    {"few", {1, 0, 0, 1}},
                    {"many", {0, 0, 1, 0}}});
}

// As in PyTorch: positions beyond all windows are zero, and padding crops those first.
TEST_P(ValuesOn, of_output_paddings_of_more_than_a_stride) {
  GraphBuilder s;
  const Tensor x = s.input({1, 1, 3}, f32, {1, 2, 3}), w = s.input({1, 1, 2}, f32, {1, 10});
  const auto transposed = [&](const ConvTranspose1dOptions& options) {
    return conv_transpose1d(x, w, std::nullopt, options);
  };
  s.output("a", transposed({.output_padding = 1, .dilation = 2}));
  s.output("b", transposed({.padding = 1, .output_padding = 1, .dilation = 2}));
  s.output("c", transposed({.stride = 2, .output_padding = 3, .dilation = 4}));
  s.output("d", transposed({.stride = 2, .padding = 2, .output_padding = 3, .dilation = 4}));
  s.output("rows", conv_transpose2d(reshape(x, {1, 1, 3, 1}), reshape(w, {1, 1, 2, 1}),
                                    std::nullopt, {.output_padding = {1, 0}, .dilation = {2, 1}}));
  expect_values(s, {{"a", {1, 2, 13, 20, 30, 0}},
                    {"b", {2, 13, 20, 30}},
                    {"c", {1, 0, 2, 0, 13, 0, 20, 0, 30, 0, 0, 0}},
                    {"d", {2, 0, 13, 0, 20, 0, 30, 0}},
                    {"rows", {1, 2, 13, 20, 30, 0}}});
}

// Expected values are torch's for int32 if it supports the op. A negative power yields an integer
// too.
TEST_P(ValuesOn, of_integers) {
  GraphBuilder s;
  const Tensor i = s.input({4}, i32, {-3, 2, 65537, -2147483648.0});
  const Tensor u = s.input({2, 2}, u32, {4294967295.0, 2, 65536, 3});
  const Tensor t = s.input({2, 3}, boolean, {1, 0, 1, 0, 0, 1});
  s.output("cube", pow(i, 3));
  s.output("powers", pow(s.input({6}, i32, {1, -1, -1, 0, 5, 0}),
                         s.input({6}, i32, {-9, -3, -2, -1, -1, 0})));
  s.output("prod", prod(i));
  s.output("cumprod", cumprod(u, 0));
  s.output("product", matmul(u, u));
  // 2^24 + 1 is not representable in f32.
  s.output("exact", matmul(s.input({1, 2}, i32, {16777217, 1}), s.input({2, 1}, i32, {1, 2})));
  s.output("added", index_add(i, 0, s.input({3}, i32, {3, 0, 3}), s.input({3}, i32, {-1, 7, 5})));
  s.output("count", sum(t));
  s.output("counts", cumsum(t, 1));
  s.output("all", min(t, 0));
  s.output("first", argmax(t, 1));
  s.output("not", bitwise_not(i));
  s.output("clamped", clamp(u, -5, 3));
  EXPECT_EQ(sum(t).dtype(), i32);
  EXPECT_EQ(cumprod(t, 0).dtype(), i32);
  EXPECT_EQ(max(t).dtype(), boolean);
  EXPECT_EQ(matmul(u, u).dtype(), u32);
  EXPECT_EQ(bitwise_not(t).dtype(), boolean);
  expect_values(s,
                {{"cube", {-27, 8, 196609, 0}},
                 {"powers", {1, -1, 1, 0, 0, 1}},
                 {"prod", {0}},
                 {"cumprod", {4294967295.0, 2, 4294901760.0, 6}},
                 {"product", {131073, 4, 131072, 131081}},
                 {"exact", {16777219}},
                 {"added", {4, 2, 65537, -2147483644.0}},
                 {"count", {3}},
                 {"counts", {1, 1, 2, 0, 0, 1}},
                 {"all", {0, 0, 1}},
                 {"first", {0, 2}},
                 {"not", {2, -3, -65538, 2147483647}},
                 {"clamped", {3, 2, 3, 3}}},
                0);
}

// The product is computed in parts, since all its terms at once would exceed the element limit of a
// tensor.
TEST(Values, of_a_large_product_of_integers) {
  const auto product = [](GraphBuilder& s, std::int64_t n) {
    const std::int64_t depth = 1100;
    const Tensor a = iota({n, depth}, 1, i32) - iota({n, depth}, 0, i32);
    s.output("corner", narrow(narrow(matmul(a, full({depth, n}, 1, i32)), 0, 7, 1), 1, 0, 2));
  };
  {
    GraphBuilder large;
    product(large, 1100);
    for (const Node& node : large.graph().nodes)
      EXPECT_LT(numel(node.type.shape), std::int64_t{1} << 31);
  }
  GraphBuilder s;
  product(s, kSanitized ? 100 : 1100);  // with sanitizers, the full size takes ten seconds
  const double row = 1100.0 * 1099 / 2 - 7 * 1100;
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, Where::kCpu), {{"corner", {row, row}}}, 0,
               "on the CPU");
}

// As in PyTorch, numbers beyond f32 become infinite, and -inf is not replaced by a large finite
// number.
TEST_P(ValuesOn, of_numbers_outside_f32) {
  GraphBuilder s;
  const Tensor x = s.input({2}, f32, {1, -3e38});
  s.output("times", x * 1e300);
  s.output("least", maximum(x, -kInf));
  s.output("filled", masked_fill(x, x < 0.0, -kInf));
  s.output("nan", where(x < 0.0, kNan, x));
  s.output("large", full({1}, 3.4028234663852886e38) - x * 0.0);
  expect_values(s,
                {{"times", {kInf, -kInf}},
                 {"least", {1, static_cast<float>(-3e38)}},
                 {"filled", {1, -kInf}},
                 {"nan", {1, kNan}},
                 {"large", {3.4028234663852886e38, 3.4028234663852886e38}}},
                0);
}

// Far on the left, sigmoid(x) is exp(x). Its relative accuracy is kept, and it does not become 0
// below -18.
TEST_P(ValuesOn, of_sigmoid_and_softplus_far_on_the_left) {
  const Values at = {-16, -18, -30, -60, -80};
  GraphBuilder s;
  const Tensor x = s.input({5}, f32, at);
  s.output("sigmoid", log(sigmoid(x)));
  s.output("softplus", log(softplus(x)));
  s.output("gradient", log(grad(sum(softplus(x)), {x})[0]));
  Values sigmoids, softpluses;
  for (const double v : at) {
    sigmoids.push_back(-std::log1p(std::exp(-v)));
    softpluses.push_back(std::log(std::log1p(std::exp(v))));
  }
  expect_values(s, {{"sigmoid", sigmoids}, {"softplus", softpluses}, {"gradient", sigmoids}});
}

// exp is accurate to a few ulp over the whole range of f32.
TEST_P(ValuesOn, of_exp_at_its_limits) {
  const Values at = {-86.75, -50.3, -7.7, 0.3, 30.1, 88.25, 88.5, 88.703125};
  Values scale, half_scale, want;
  for (const double v : at) {
    const auto x = static_cast<double>(static_cast<float>(v));
    half_scale.push_back(std::exp2(-std::round(x / std::log(2.0) / 2)));
    scale.push_back(half_scale.back());
    want.push_back(std::exp(x) * scale.back() * half_scale.back());
  }
  GraphBuilder s;
  const Shape shape = {static_cast<std::int64_t>(at.size())};
  const Tensor y = exp(s.input(shape, f32, at));
  s.output("y", y * s.input(shape, f32, scale) * s.input(shape, f32, half_scale));
  expect_values(s, {{"y", want}}, 3e-7);
}

// erf keeps its relative accuracy near 0, where it is 2 / sqrt(pi) x.
TEST_P(ValuesOn, of_erf_near_zero) {
  GraphBuilder s;
  const Tensor x = s.input({3}, f32, {1e-6, -1e-4, 0});
  s.output("y", erf(x) * 1e6);
  const auto of = [](double v) { return std::erf(static_cast<float>(v)) * 1e6; };
  expect_values(s, {{"y", {of(1e-6), of(-1e-4), 0}}});
}

TEST_P(ValuesOn, of_gradients_at_corners) {
  GraphBuilder s;
  const Tensor x = s.input({5}, f32, {-1, 1, 0, -1.5, 2});
  s.output("clamp", grad(sum(clamp(x, -1, 1)), {x})[0]);
  s.output("softplus", grad(sum(softplus(x * 0.0)), {x})[0] + grad(sum(softplus(x)), {x})[0]);
  s.output("steep", grad(sum(leaky_relu(x, 2) * 3.0), {x})[0]);
  s.output("leaky", leaky_relu(x, 2));
  s.output("constant", grad(sum(maximum(0.0, x) + minimum(x, 1.0)), {x})[0]);
  // The branch not taken contributes nothing, whatever its value. Ops that feed it still receive
  // gradients.
  s.output("branch", grad(sum(where(x > 0.0, x * 2.0, x * 0.0 + kNan)), {x})[0]);
  const auto sigma = [](double v) { return 1 / (1 + std::exp(-v)); };
  expect_values(s, {{"clamp", {1, 1, 1, 0, 0}},
                    {"softplus", {sigma(-1), sigma(1), 0.5, sigma(-1.5), sigma(2)}},
                    {"steep", {6, 3, 6, 6, 3}},
                    {"leaky", {-2, 1, 0, -3, 2}},
                    {"constant", {1, 1.5, 1.5, 1, 1}},
                    {"branch", {0, 2, 0, 0, 2}}});
}

// Scans with the sum of numbers, with steps h -> a h + b as pairs, and with 2 x 2 matrices, which
// do not commute.
TEST_P(ValuesOn, of_associative_scans) {
  GraphBuilder s;
  const Tensor x = s.input({5, 2}, f32, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const auto add = [](Tensor a, Tensor b) { return a + b; };
  s.output("sums", associative_scan(add, x));
  s.output("from_the_end", associative_scan(add, x, 0, true));
  s.output("gradient", grad(sum(associative_scan(add, x) * x), {x})[0]);
  const Tensor a = s.input({4}, f32, {0.5, 2, 3, 0.25}), b = s.input({4}, f32, {1, -1, 2, 4});
  const auto after = [](const std::vector<Tensor>& p, const std::vector<Tensor>& q) {
    return std::vector<Tensor>{q[0] * p[0], q[0] * p[1] + q[1]};
  };
  s.output("states", associative_scan(after, {a, b})[1]);
  const Tensor m = s.input({3, 2, 2}, f32, {1, 1, 0, 1, 0, 1, 1, 0, 2, 0, 1, 1});
  const auto times = [](Tensor p, Tensor q) { return matmul(p, q); };
  s.output("products", associative_scan(times, m));
  expect_values(s, {{"sums", {1, 2, 4, 6, 9, 12, 16, 20, 25, 30}},
                    {"from_the_end", {25, 30, 24, 28, 21, 24, 16, 18, 9, 10}},
                    {"gradient", {26, 32, 28, 34, 30, 36, 32, 38, 34, 40}},
                    {"states", {1, 1, 5, 5.25}},
                    {"products", {1, 1, 0, 1, 1, 1, 1, 0, 3, 1, 2, 0}}});
}

// Rows that are not looked up may hold any value.
TEST_P(ValuesOn, of_lookups_next_to_nan) {
  GraphBuilder s;
  const Tensor table = s.input({3, 2}, f32, {1, 2, kNan, kInf, 3, 4});
  const Tensor index = s.input({3}, i32, {2, 0, 2});
  const Tensor picked = embedding(index, table);
  s.output("rows", picked);
  s.output("gradient", grad(sum(picked * 5.0), {table})[0]);
  s.output("taken", take_along_dim(table, s.input({1, 2}, i32, {2, 0}), 0));
  const Tensor logits = s.input({2, 3}, f32, {1, -kInf, 1, 0, 0, -kInf});
  const Tensor each = cross_entropy(logits, s.input({2}, i32, {2, 0}), Reduction::kNone);
  s.output("loss", each);
  s.output("logits", grad(sum(each), {logits})[0]);
  const double ln2 = std::log(2.0);
  expect_values(s, {{"rows", {3, 4, 1, 2, 3, 4}},
                    {"gradient", {5, 5, 0, 0, 10, 10}},
                    {"taken", {3, 2}},
                    {"loss", {ln2, ln2}},
                    {"logits", {0.5, 0, -0.5, -0.5, 0.5, 0}}});
}

// Rows below any finite substitute for -inf, and rows of only -inf.
TEST_P(ValuesOn, of_softmax_far_below_zero) {
  GraphBuilder s;
  const Tensor x = s.input({3, 2}, f32, {-2e30, -2e30, -3e38, -2e38, -1e30, -kInf});
  s.output("softmax", softmax(x));
  s.output("log_softmax", log_softmax(x));
  const Tensor none = s.input({1, 2}, f32, {-kInf, -kInf});
  s.output("logsumexp", logsumexp(none, 1));
  s.output("masked", masked_softmax(none, none < 0.0 && none > 0.0));
  s.output("max", max(x, 1));
  const double ln2 = std::log(2.0);
  expect_values(s, {{"softmax", {0.5, 0.5, 0, 1, 1, 0}},
                    {"log_softmax", {-ln2, -ln2, static_cast<float>(-1e38), 0, 0, -kInf}},
                    {"logsumexp", {-kInf}},
                    {"masked", {0, 0}},
                    {"max", {-2e30, -2e38, -1e30}}});
}

// Row q of a causal softmax covers the columns up to q, and is exactly 0 beyond.
TEST_P(ValuesOn, of_causal_rows) {
  GraphBuilder s;
  const Tensor x = s.input({3, 3}, f32, {0, 9, 9, 0, std::log(3.0), 9, 0, 0, std::log(2.0)});
  const Tensor soft = masked_softmax(x, causal_mask(3, 3));
  s.output("softmax", soft);
  s.output("filled", where(causal_mask(3, 3), x * 0.0, -5.0));
  s.output("gradient", grad(sum(narrow(soft, 1, 0, 1)), {x})[0]);
  expect_values(s, {{"softmax", {1, 0, 0, 0.25, 0.75, 0, 0.25, 0.25, 0.5}},
                    {"filled", {0, -5, -5, 0, 0, -5, 0, 0, 0}},
                    {"gradient", {0, 0, 0, 0.1875, -0.1875, 0, 0.1875, -0.0625, -0.125}}});
}

// Rotates element i of the first half with element i + D / 2 by the angle t * base^(-2 i / D).
TEST_P(ValuesOn, of_rope) {
  constexpr std::size_t kLength = 3, kWidth = 4;
  GraphBuilder s;
  const Tensor q = s.input({kLength, kWidth}), k = s.input({2, kLength, kWidth});
  s.output("q", rope(q));
  s.output("k", rope(k, {.base = 100, .offset = 5}));
  const auto turned = [](const Values& x, double base, double offset) {
    Values y(x.size());
    for (std::size_t row = 0; row * kWidth < x.size(); ++row) {
      for (std::size_t i = 0; i < kWidth / 2; ++i) {
        const double angle = (static_cast<double>(row % kLength) + offset) *
                             std::pow(base, -2.0 * static_cast<double>(i) / kWidth);
        const double a = x[row * kWidth + i], b = x[row * kWidth + i + kWidth / 2];
        y[row * kWidth + i] = a * std::cos(angle) - b * std::sin(angle);
        y[row * kWidth + i + kWidth / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
    return y;
  };
  expect_values(
      s, {{"q", turned(s.leaves.at("in0"), 10000, 0)}, {"k", turned(s.leaves.at("in1"), 100, 5)}},
      3e-6);
}

TEST_P(ValuesOn, of_one_hot_and_repeated_pixels) {
  GraphBuilder s;
  const Tensor hot = one_hot(s.input({3}, i32, {1, -1, 2}), 2);
  const Tensor x = s.input({1, 1, 1, 2}, f32, {3, 4});
  const Tensor twice = interpolate(x, {2, 4});
  s.output("hot", hot);
  s.output("twice", twice);
  s.output("gradient", grad(sum(twice), {x})[0]);
  expect_values(
      s, {{"hot", {0, 1, 0, 0, 0, 0}}, {"twice", {3, 3, 4, 4, 3, 3, 4, 4}}, {"gradient", {4, 4}}});
}

}  // namespace
}  // namespace tensorgrad::testing
