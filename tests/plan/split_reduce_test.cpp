// SPDX-License-Identifier: MIT
// Long reductions return the same result in two steps as in one, for every shape, also if their
// length has no divisor.
#include <cmath>
#include <limits>

#include "ops/registry.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

struct LongCase {
  Shape shape;
  std::vector<int> axes;
};

// Lengths with divisors, primes and powers of two; axes at either end, in the middle and apart.
const std::vector<LongCase> kCases = {
    {{65536}, {0}},        {{65537}, {0}},          {{40009}, {}},        {{3, 33000}, {1}},
    {{33000, 5}, {0}},     {{40009, 2}, {0}},       {{2, 40009, 3}, {1}}, {{190, 200, 2}, {0, 1}},
    {{7, 33, 1, 211}, {}}, {{200, 3, 190}, {0, 2}}, {{40, 32771}, {1}},   {{31, 32768}, {-1}},
};

std::string name_of(const LongCase& c) {
  std::string text = tensorgrad::to_string(c.shape) + " over";
  for (const int axis : c.axes) text += " " + std::to_string(axis);
  return text;
}

std::size_t launches(const Graph& graph) {
  return compile_for_test(graph, 8).program.launches.size();
}

// Sums of values of both signs; extremes of values that are all on one side of the padding.
void check_reductions(const LongCase& c, Where where) {
  SCOPED_TRACE(name_of(c));
  GraphBuilder s(static_cast<std::uint64_t>(numel(c.shape)));
  const Tensor x = s.input(c.shape, -3, -1), y = s.input(c.shape, 1, 3), z = s.input(c.shape);
  s.output("sum", sum(z, c.axes));
  s.output("max", max(x, c.axes));
  s.output("min", min(y, c.axes));
  s.output("later", sqrt(sum(square(z) * 0.5, c.axes)) + 1);
  s.check(where);
}

TEST(SplitReduce, floats_of_every_shape_on_cpu) {
  for (const LongCase& c : kCases) check_reductions(c, Where::kCpu);
}

TEST(SplitReduce, floats_of_many_shapes_on_webgpu) {
  for (const std::size_t i : {1U, 3U, 4U, 6U, 9U, 11U}) {
    check_reductions(kCases[i], Where::kWebGpu);
  }
}

void check_integers(const LongCase& c, Where where) {
  SCOPED_TRACE(name_of(c));
  GraphBuilder s(3);
  const Tensor x = s.input(c.shape, -2000000000, -5, i32), y = s.input(c.shape, 7, 4000000000, u32);
  for (const auto& [name, value] : {std::pair{"i32", x}, std::pair{"u32", y}}) {
    s.output(std::string("sum ") + name, sum(value, c.axes));
    s.output(std::string("max ") + name, max(value, c.axes));
    s.output(std::string("min ") + name, min(value, c.axes));
  }
  s.check(where);
}

void check_all_integers(Where where) {
  for (const LongCase& c : {kCases[1], kCases[4], kCases[6]}) {
    check_integers(c, where);
  }
}
TEST(SplitReduce, integers_on_cpu) { check_all_integers(Where::kCpu); }
TEST(SplitReduce, integers_on_webgpu) { check_all_integers(Where::kWebGpu); }

// Draws few different values, so that the extreme occurs in many parts; the first one wins. NaN
// beats all numbers, and the first of several NaN wins.
void check_places(const Shape& shape, int axis, Where where) {
  SCOPED_TRACE(tensorgrad::to_string(shape));
  GraphBuilder s(5);
  const Tensor ties = s.input(shape, -9, -6, i32), spread = s.input(shape, -3, -1);
  Values with_nan = s.draw.values(f32, numel(shape), -1, 1);
  for (const double at : {0.9, 0.4, 0.7}) {
    with_nan[static_cast<std::size_t>(at * static_cast<double>(with_nan.size()))] =
        std::numeric_limits<double>::quiet_NaN();
  }
  const Tensor nan = s.input(shape, f32, with_nan);
  const Tensor same = broadcast_to(s.input({}, -1, 1), shape) * 1.5;
  int i = 0;
  for (const Tensor& x : {ties, spread, nan, same, ties * 3 + 1}) {
    s.output("max " + std::to_string(i), argmax(x, axis));
    s.output("min " + std::to_string(i++), argmin(x, axis));
  }
  s.check(where);
}

void check_all_places(Where where) {
  check_places({65536}, 0, where);
  check_places({2, 40009}, 1, where);
  check_places({40009, 2}, 0, where);
}
TEST(SplitReduce, argmax_returns_the_first_on_cpu) { check_all_places(Where::kCpu); }
TEST(SplitReduce, argmax_returns_the_first_on_webgpu) { check_all_places(Where::kWebGpu); }

void check_split_gradients(Where where) {
  GraphBuilder s(11);
  const Tensor x = s.input({40009, 3}), w = s.input({40009});
  const Tensor columns = sum(tanh(x), 0);
  const Tensor loss = sum(columns * columns) * 1e-6 + max(w) * min(w) + sum(log_softmax(w)) * 1e-6;
  const std::vector<Tensor> grads = grad(loss, {x, w});
  s.output("loss", loss);
  s.output("dx", grads[0]);
  s.output("dw", grads[1]);
  s.check(where);
}
TEST(SplitReduce, gradients_match_the_reference) { check_split_gradients(Where::kCpu); }
TEST(SplitReduce, gradients_match_the_reference_on_webgpu) {
  check_split_gradients(Where::kWebGpu);
}

TEST(SplitReduce, can_be_disabled) {
  GraphBuilder s;
  s.output("sum", sum(s.input({65536})));
  EXPECT_EQ(launches(s.graph()), 2U);
  CompileRequest request;
  request.graph = s.graph();
  request.split_rows = !device_at(Where::kCpu)->info().cuts_rows;
  EXPECT_EQ(compile_graph(std::move(request)).program.launches.size(), 1U);
  const ScopedEnv env("TENSORGRAD_SKIP", "split_reduce");
  EXPECT_EQ(launches(s.graph()), 1U);
  s.check(Where::kCpu);
}

// 2^31-1 is prime, and no tensor is larger.
TEST(SplitReduce, is_not_padded_beyond_the_largest_tensor) {
  GraphBuilder s;
  s.output("sum", sum(arange(2147483647)));
  EXPECT_EQ(launches(s.graph()), 1U);
}

// Reductions that fit one launch stay one launch: small sums, and a softmax of many long rows.
TEST(SplitReduce, is_not_applied_without_benefit) {
  {
    GraphBuilder s;
    s.output("loss", mean(square(s.input({256, 10}))));
    EXPECT_EQ(launches(s.graph()), 1U);
  }
  GraphBuilder s;
  s.output("softmax", softmax(s.input({64, 50000})));
  EXPECT_EQ(launches(s.graph()), 1U);
}

void check_equal_sums(Where where) {
  GraphBuilder s;
  const Tensor x = s.input({3, 100003}, -100, 100);
  s.output("sum", sum(x, 1));
  const ValueMap first = run_graph(s.graph(), s.leaves, where);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run_graph(s.graph(), s.leaves, where).at("sum"), first.at("sum"));
  }
}
TEST(SplitReduce, is_deterministic) { check_equal_sums(Where::kCpu); }
TEST(SplitReduce, is_deterministic_on_webgpu) { check_equal_sums(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
