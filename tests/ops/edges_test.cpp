// SPDX-License-Identifier: MIT
// Values at the edges of f32 and f16: large angles, subnormals, infinities combined with NaN, sums
// that overflow or lose digits on the way, windows and rows of -inf, scatters to many positions.
#include <cmath>

#include "op_cases.h"

namespace tensorgrad::testing {
namespace {

class EdgesOn : public ::testing::TestWithParam<Where> {
 protected:
  static ValueMap run(GraphBuilder& s) { return run_graph(s.graph(), s.leaves, GetParam()); }
  static void expect_values(GraphBuilder& s, const ValueMap& want, double tolerance = 1e-6) {
    expect_close(s.graph(), run(s), want, tolerance, to_string(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(cpu, EdgesOn, ::testing::Values(Where::kCpu));
INSTANTIATE_TEST_SUITE_P(webgpu, EdgesOn, ::testing::Values(Where::kWebGpu));

// Rounds to float, the values that the functions receive.
Values as_floats(Values values) {
  for (double& value : values) value = static_cast<float>(value);
  return values;
}

template <class Function>
Values each(const Values& x, Function function) {
  Values y;
  for (const double value : x) y.push_back(function(value));
  return y;
}

// Accurate to 2 ulp up to the largest float. Some angles are next to multiples of pi/2, so that
// their sine or cosine is tiny.
TEST_P(EdgesOn, circular_functions_of_large_angles) {
  Values x = {1e5,
              1.3e5,
              1e6,
              1e7,
              1e8,
              1e10,
              1e20,
              1e30,
              3e38,
              -1e6,
              -3e38,
              65535.9,
              105414,
              2.0 * 1e9,
              710.5 * 1e3,
              6381956970095103.0,
              std::ldexp(16367173.0, 72),
              std::ldexp(13012763.0, 110)};
  Draw draw(5);
  for (int i = 0; i < 4000; ++i)
    x.push_back(std::exp2(draw.real(10, 128)) * (draw.chance(0.5) ? 1 : -1));
  x = as_floats(std::move(x));
  GraphBuilder s;
  const Tensor in = s.input({static_cast<std::int64_t>(x.size())}, f32, x);
  s.output("sin", sin(in));
  s.output("cos", cos(in));
  s.output("tan", tan(in));
  const ValueMap got = run(s);
  const auto far = [&](const std::string& name, double (*function)(double)) {
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = function(x[i]);
      worst = std::max(worst, std::abs(got.at(name)[i] - want) / std::abs(want));
    }
    return worst;
  };
  EXPECT_LT(far("sin", std::sin), 4e-7);
  EXPECT_LT(far("cos", std::cos), 4e-7);
  EXPECT_LT(far("tan", std::tan), 6e-7);
}

// A constant factor of zero must not hide an infinite or NaN operand.
TEST_P(EdgesOn, zero_times_infinity) {
  GraphBuilder s;
  const Tensor x = s.input({6}, f32, {kInf, -kInf, kNan, 2, -2, 0});
  s.output("times", x * 0.0);
  s.output("below", 0.0 / x);
  s.output("less", x - x);
  s.output("squared", square(x) * 0.0);
  s.output("chosen", where(x > 1.0, x * 0.0, x));
  s.output("sum", sum(x * 0.0));
  s.output("signs", 1.0 / (x * -0.0));
  expect_values(s, {{"times", {kNan, kNan, kNan, 0, 0, 0}},
                    {"below", {0, 0, kNan, 0, 0, kNan}},
                    {"less", {kNan, kNan, kNan, 0, 0, 0}},
                    {"squared", {kNan, kNan, kNan, 0, 0, 0}},
                    {"chosen", {kNan, -kInf, kNan, 0, -2, 0}},
                    {"sum", {kNan}},
                    {"signs", {kNan, kNan, kNan, -kInf, kInf, -kInf}}});
}

TEST_P(EdgesOn, remainders_of_far_apart_numbers) {
  const Values a = as_floats({1e30, 1e30, 3e38, 3e38, 1e30, -5.5, 1e-30}),
               b = as_floats({1e-30, 1e-20, 1e-30, 1e-35, 3, 2, 1e-35});
  GraphBuilder s;
  const Tensor x = s.input({7}, f32, a), y = s.input({7}, f32, b);
  s.output("rest", fmod(x, y) / y);
  Values want;
  for (std::size_t i = 0; i < a.size(); ++i) want.push_back(std::fmod(a[i], b[i]) / b[i]);
  expect_values(s, {{"rest", want}});
}

// As C's hypot: the result is infinite if either argument is, even if the other is NaN.
TEST_P(EdgesOn, hypot_beside_infinity) {
  GraphBuilder s;
  const Tensor a = s.input({5}, f32, {kNan, kInf, kNan, -kInf, 3e38});
  const Tensor b = s.input({5}, f32, {kInf, kNan, 1, 2, 1});
  s.output("y", hypot(a, b));
  expect_values(s, {{"y", {kInf, kInf, kNan, kInf, static_cast<float>(3e38)}}});
}

TEST_P(EdgesOn, nan_is_not_below_a_threshold) {
  GraphBuilder s;
  const Tensor x = s.input({3}, f32, {kNan, 1, -1});
  s.output("y", threshold(x, 0, 7));
  s.output("dx", grad(sum(threshold(x, 0, 7)), {x})[0]);
  expect_values(s, {{"y", {kNan, 1, 7}}, {"dx", {1, 1, 0}}});
}

TEST_P(EdgesOn, logsumexp_of_minus_infinity_has_gradient_zero) {
  GraphBuilder s;
  const Tensor x = s.input({2, 2}, f32, {-kInf, -kInf, 0, 0});
  const Tensor y = logsumexp(x, 1);
  s.output("y", y);
  s.output("dx", grad(sum(narrow(y, 0, 1, 1)), {x})[0]);
  s.output("all", grad(sum(y), {x})[0]);
  expect_values(
      s, {{"y", {-kInf, std::log(2.0)}}, {"dx", {0, 0, 0.5, 0.5}}, {"all", {0, 0, 0.5, 0.5}}});
}

// The weight of a masked score is 0, even if its exponential would overflow.
TEST_P(EdgesOn, second_gradients_of_attention_ignore_masked_scores) {
  GraphBuilder s;
  const Tensor q = s.input({1, 2, 1}, f32, {1, 1}), k = s.input({1, 2, 1}, f32, {1, 400});
  const Tensor v = s.input({1, 2, 1}, f32, {2, 3});
  const Tensor o = scaled_dot_product_attention(q, k, v, {.causal = true, .scale = 1.0});
  const std::vector<Tensor> first = grad(sum(square(o)), {q, k, v});
  const Tensor loss = sum(square(first[0])) + sum(square(first[1])) + sum(square(first[2]));
  const std::vector<Tensor> second = grad(loss, {q, k, v});
  for (std::size_t i = 0; i < second.size(); ++i) s.output("g" + std::to_string(i), second[i]);
  // Row 0 attends to key 0 only, row 1 to key 1 only: loss = (2 v0)^2 + (2 v1)^2.
  expect_values(s, {{"g0", {0, 0}}, {"g1", {0, 0}}, {"g2", {16, 24}}});
}

// As in PyTorch: the gradient goes to the first element of the window that is not padding.
TEST_P(EdgesOn, gradient_of_a_max_pool_of_minus_infinity_stays_inside) {
  GraphBuilder s;
  const Tensor x = s.input({1, 1, 3, 3}, f32, Values(9, -kInf));
  const Tensor wide = s.input({1, 1, 5, 5}, f32, Values(25, -kInf));
  const auto gradient = [](Tensor in, Tensor y) { return grad(sum(y), {in})[0]; };
  s.output("few", gradient(x, max_pool2d(x, 3, {.stride = 2, .padding = 1})));
  s.output("many", gradient(wide, max_pool2d(wide, 5, {.stride = 2, .padding = 2})));
  s.output("dilated", gradient(wide, max_pool2d(wide, 3, {.padding = 1, .dilation = 2})));
  expect_values(
      s,
      {{"few", {1, 1, 0, 1, 1, 0, 0, 0, 0}},
       {"many", {4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
       {"dilated", {0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}});
}

// What is repeated in a short bin is not multiplied by 0.
TEST_P(EdgesOn, infinities_stay_in_their_bin_of_an_adaptive_pool) {
  GraphBuilder s;
  const Tensor x = s.input({1, 1, 1, 5}, f32, {1, kInf, 2, 3, 5});
  s.output("mean", adaptive_avg_pool2d(x, {1, 3}));
  expect_values(s, {{"mean", {kInf, kInf, 4}}});
}

TEST_P(EdgesOn, norms_of_infinities) {
  GraphBuilder s;
  const Tensor x = s.input({3, 3}, f32, {3, -kInf, 4, 0, 0, 0, kNan, 1, kInf});
  s.output("norm", norm(x, 3, 1));
  expect_values(s, {{"norm", {kInf, 0, kNan}}});
}

// The gradient is sinh(x), not a difference of exponentials, which are 1 there.
TEST_P(EdgesOn, hyperbolic_cosine_near_0) {
  GraphBuilder s;
  const Tensor x = s.input({4}, f32, {1e-3, -1e-3, 0, 89});
  s.output("y", cosh(narrow(x, 0, 0, 3)));
  s.output("log", log(cosh(narrow(x, 0, 3, 1))));
  s.output("thousandfold", grad(sum(cosh(narrow(x, 0, 0, 3))), {x})[0] * 1e3);
  const double y = 1 + 0.5e-6, slope = 1 + 1e-6 / 6;
  expect_values(
      s,
      {{"y", {y, y, 1}}, {"log", {89 - std::log(2.0)}}, {"thousandfold", {slope, -slope, 0, 0}}});
}

// The sum of a window exceeds the range of f16, its mean does not.
TEST_P(EdgesOn, means_of_halves) {
  GraphBuilder s;
  const Tensor h = full({1, 1, 6, 6}, 60000, f16), x = full({36}, 60000, f16);
  const auto output = [&](const std::string& name, const Tensor& y) {
    EXPECT_EQ(y.dtype(), f16) << name;
    s.output(name, max(cast(y, f32)));
  };
  output("avg", avg_pool2d(h, 3));
  output("padded", avg_pool2d(h, 3, {.padding = 1, .count_include_pad = false}));
  output("global", adaptive_avg_pool2d(h, 1));
  output("uneven", adaptive_avg_pool2d(h, 4));
  output("bilinear", interpolate(h, {9, 4}, Interpolation::kBilinear));
  output("mean", mean(x));
  output("dot", dot(x, full({36}, 1.0 / 64, f16)));
  expect_values(s, {{"avg", {60000}},
                    {"padded", {60000}},
                    {"global", {60000}},
                    {"uneven", {60000}},
                    {"bilinear", {60000}},
                    {"mean", {60000}},
                    {"dot", {33760}}});  // the f16 next to 33750
}

// The mean is large compared with the deviation of a row, so the rounding error of the mean must be
// subtracted too. There are enough rows that one thread of a GPU sums each. The mean is an f32:
// half an ulp of it is 2e-3 of the deviation of 65 elements, and 4e-4 of that of 257.
void expect_norms_of_large_means(std::int64_t size, double tolerance, Where where) {
  constexpr std::int64_t kLineCount = 1 << 16;
  std::vector<float> row, want;
  for (std::int64_t i = 0; i < size; ++i)
    row.push_back(static_cast<float>(1000 + 1e-3 * static_cast<double>(i)));
  double mean_of = 0, var_of = 0;
  for (const double x : row) mean_of += x / static_cast<double>(size);
  for (const double x : row) var_of += (x - mean_of) * (x - mean_of) / static_cast<double>(size);
  for (const double x : row)
    want.push_back(static_cast<float>((x - mean_of) / std::sqrt(var_of + 1e-5)));
  GraphBuilder s;
  // Reads an input, because functions of constants are evaluated in double.
  const Tensor x =
      broadcast_to(s.input({1, size}, f32, Values(row.begin(), row.end())), {kLineCount, size});
  const Tensor y = constant(want, {1, size});
  s.output("layer", max(abs(layer_norm(x) - y)));
  s.output("group",
           max(abs(reshape(group_norm(reshape(x, {kLineCount, size, 1}), 1), x.shape()) - y)));
  const auto [means, vars] = batch_statistics(transpose(x));
  const Tensor columns = batch_norm(transpose(x), means, vars);
  s.output("batch", max(abs(transpose(columns) - y)));
  s.output("var", max(abs(var(x, 1, 0) * (1 / var_of) - 1.0)));
  const Values none = {0};
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, where),
               {{"layer", none}, {"group", none}, {"batch", none}, {"var", none}}, tolerance,
               std::to_string(size) + " elements " + to_string(where));
}
TEST_P(EdgesOn, norms_of_rows_with_a_large_mean) {
  expect_norms_of_large_means(65, 3e-3, GetParam());
  expect_norms_of_large_means(257, 5e-4, GetParam());  // as PyTorch
}

// Blockwise summation keeps the error of a long sum in its last digits.
TEST_P(EdgesOn, running_sums_of_many) {
  constexpr std::int64_t kCount = 1 << 20;
  GraphBuilder s;
  s.output("ends", unfold(cumsum(full({kCount}, 0.1), 0), 0, 1, 1023));
  s.output("lines", unfold(cumsum(full({1 << 14, 64}, 0.1), 0), 0, 1, 1023));
  const double step = static_cast<float>(0.1);
  const ValueMap got = run(s);
  double worst = 0;
  for (const auto& [name, width] :
       {std::pair<std::string, std::size_t>{"ends", 1}, {"lines", 64}}) {
    const Values& sums = got.at(name);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::size_t line = i / width;
      const double want = step * static_cast<double>(1 + line * 1023);
      worst = std::max(worst, std::abs(sums[i] / want - 1));
    }
  }
  EXPECT_LT(worst, 2e-6);
}

// If several sources go to one position, the last wins. Sources outside the range are dropped.
TEST_P(EdgesOn, scatter_of_many_to_many) {
  constexpr std::int64_t kCount = 65536, kPlaces = 50000;
  GraphBuilder s(3);
  Values index, want(kPlaces, -1);
  for (std::int64_t i = 0; i < kCount; ++i) {
    index.push_back(static_cast<double>(s.draw.whole(-5, kPlaces + 5)));
    if (index.back() >= 0 && index.back() < kPlaces)
      want[static_cast<std::size_t>(index.back())] = static_cast<double>(i);
  }
  const Tensor at = s.input({kCount}, i32, index);
  const Tensor source = cast(arange(kCount), f32), x = full({kPlaces}, -1);
  const Tensor y = scatter(x, 0, at, source);
  s.output("y", y);
  expect_values(s, {{"y", want}}, 0);
}

// Both algorithms that find the last source of a position return the same.
TEST_P(EdgesOn, scatter_of_few_and_many_agree) {
  GraphBuilder s(4);
  for (const std::int64_t count : {64, 65, 100, 129}) {
    const Tensor x = s.input({2, 90, 3}), source = s.input({2, count, 3});
    const Tensor index = s.input({2, count, 3}, -3, 95, i32);
    const std::string name = std::to_string(count);
    const Tensor y = scatter(x, 1, index, source);
    s.output(name, y);
    const std::vector<Tensor> grads = grad(sum(square(y)), {x, source});
    s.output(name + " x", grads[0]);
    s.output(name + " source", grads[1]);
    // The reference applies one source at a time.
    Tensor slow = x;
    for (std::int64_t i = 0; i < count; ++i)
      slow =
          where(eq(iota(x.shape(), 1, i32), narrow(index, 1, i, 1)), narrow(source, 1, i, 1), slow);
    if (count == 65) s.output("slow", slow - y);
  }
  const ValueMap got = run(s);
  expect_close(s.graph(), got, interpret_graph(s.graph(), s.leaves), 1e-6, to_string(GetParam()));
  for (const double v : got.at("slow")) EXPECT_EQ(v, 0);
}

// Subnormals are recognized by their bits, because as floats a device may flush them to zero.
TEST_P(EdgesOn, logarithms_of_subnormals) {
  const Values x = as_floats({1e-38, 1e-40, 1.4e-45, 1.17549435e-38, 0, -1e-40, -0.0, kInf, kNan});
  GraphBuilder s;
  const Tensor in = s.input({9}, f32, x);
  s.output("log", log(in));
  s.output("log2", log2(in));
  s.output("log10", log10(in));
  // A device may flush a negative subnormal to -0, whose root is not NaN.
  const Values positive = as_floats({1e-38, 1e-40, 1.4e-45, 1.17549435e-38, 0, kInf, kNan});
  s.output("root", pow(s.input({7}, f32, positive), 0.25));
  const auto of = [&](double (*function)(double)) { return each(x, function); };
  const ValueMap want = {{"log", of(std::log)},
                         {"log2", of(std::log2)},
                         {"log10", of(std::log10)},
                         {"root", each(positive, [](double v) { return std::pow(v, 0.25); })}};
  expect_values(s, want, 3e-7);
}

}  // namespace
}  // namespace tensorgrad::testing
