// SPDX-License-Identifier: MIT
// Rounding bounds are wide enough for f32 arithmetic and narrow enough to detect an error.
#include <cmath>

#include "compile/debug/error_bound.h"
#include "ops/pointwise.h"
#include "ops/registry.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {
namespace {

// The reference is the graph with every f32 result rounded to float, as a plain f32 device returns
// it.
TEST(WithErrorBound, covers_arithmetic_in_f32) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const RandomGraph random = random_graph(seed);
    ErrorBoundOptions options;
    options.leaf = [&](const Node& leaf) { return random.leaves.at(leaf.attrs.text("name")); };
    const std::vector<WithErrorBound> bounded = interpret_with_error_bound(random.graph, options);
    const ValueMap exact = interpret_graph(random.graph, random.leaves);
    for (std::size_t i = 0; i < random.graph.outputs.size(); ++i) {
      const auto difference = first_difference(bounded[i], exact.at(random.graph.outputs[i].name));
      EXPECT_FALSE(difference) << "seed " << seed << ", " << random.graph.outputs[i].name;
    }
  }
}

// Evaluates one op with the given operands.
WithErrorBound apply(const OpDef& op, const std::vector<WithErrorBound>& inputs,
                     const Attrs& attrs = {}) {
  Graph graph;
  std::vector<ValueId> ids;
  std::vector<const WithErrorBound*> pointers;
  for (const WithErrorBound& input : inputs) {
    const Type& type = input.value.type;
    ids.push_back(graph.add(ops::input, {},
                            {{"name", "x" + std::to_string(ids.size())},
                             {"shape", type.shape},
                             {"dtype", static_cast<std::int64_t>(type.dtype)}}));
    pointers.push_back(&input);
  }
  const ValueId id = graph.add(op, ids, attrs);
  return evaluate_with_error_bound(graph[id], pointers, kOpTolerance);
}

WithErrorBound bounded(const Values& values, const Values& error = {}) {
  return {{{DType::kF32, {static_cast<std::int64_t>(values.size())}}, values}, error};
}

TEST(WithErrorBound, a_sum_that_cancels_is_allowed_more_than_one_that_does_not) {
  const Attrs all = {{"axes", std::vector<std::int64_t>{0}}};
  const WithErrorBound cancels = apply(ops::reduce_sum, {bounded({1000, -1000, 0.001})}, all);
  const WithErrorBound grows = apply(ops::reduce_sum, {bounded({0.0005, 0.0005})}, all);
  EXPECT_NEAR(cancels.value.data[0], 0.001, 1e-9);
  EXPECT_GT(cancels.error[0], 1e-2);
  EXPECT_LT(grows.error[0], 1e-7);
}

// Subnormal products, sums and operands may all be flushed to zero.
TEST(WithErrorBound, numbers_below_the_least_normal_one_may_count_as_zero) {
  const Type row{DType::kF32, {1, 64}}, column{DType::kF32, {64, 1}};
  const Values small(64, 0x1p-70), products(64, 0x1p-127), ones(64, 1);
  const WithErrorBound sum = apply(
      ops::matmul,
      {error_bound_in_memory(row, small), error_bound_in_memory(column, Values(64, 0x1p-58))});
  EXPECT_EQ(sum.value.data[0], 0x1p-122);
  EXPECT_GE(sum.error[0], 0x1p-122);
  const WithErrorBound read = apply(
      ops::matmul,
      {error_bound_in_memory(row, products), error_bound_in_memory(column, Values(64, 0x1p40))});
  EXPECT_EQ(read.value.data[0], 0x1p-81);
  EXPECT_GE(read.error[0], 0x1p-81);
  EXPECT_TRUE(error_bound_in_memory(row, ones).error.empty());
}

TEST(WithErrorBound, errors_grow_through_an_op_as_its_slope_says) {
  const WithErrorBound steep = apply(ops::exp, {bounded({10}, {0.01})});
  EXPECT_GT(steep.error[0], 0.01 * std::exp(10.0));
  EXPECT_LT(steep.error[0], 0.011 * std::exp(10.0));
  const WithErrorBound flat = apply(ops::tanh, {bounded({10}, {0.01})});
  EXPECT_LT(flat.error[0], 1e-4);
}

TEST(WithErrorBound, comparison_may_flip_only_if_too_close) {
  const WithErrorBound zero = bounded({0, 0, 0});
  const WithErrorBound greater = apply(ops::gt, {bounded({1e-4, 0.5, 0}, {1e-3, 1e-3, 0}), zero});
  EXPECT_EQ(greater.value.data, (Values{1, 1, 0}));
  EXPECT_EQ(greater.error[0], 1);
  EXPECT_EQ(greater.error[1], 0);
  EXPECT_EQ(greater.error[2], 0);
}

TEST(WithErrorBound, comparison_adds_the_errors_of_both_sides) {
  const WithErrorBound near = apply(ops::gt, {bounded({1.5}, {0.3}), bounded({1}, {0.3})});
  EXPECT_EQ(near.error[0], 1);
  EXPECT_EQ(apply(ops::eq, {bounded({1.5}, {0.3}), bounded({1}, {0.3})}).error[0], 1);
  EXPECT_EQ(apply(ops::gt, {bounded({1.5}, {0.2}), bounded({1}, {0.2})}).error[0], 0);
}

TEST(WithErrorBound, maximum_keeps_an_infinite_bound) {
  EXPECT_EQ(apply(ops::maximum, {bounded({0}), bounded({1}, {INFINITY})}).error[0], INFINITY);
  EXPECT_LT(apply(ops::tanh, {bounded({0}, {INFINITY})}).error[0], 1.1);
}

// The value of a decomposition need not be computed last.
TEST(WithErrorBound, near_ties_of_a_pool_may_go_either_way) {
  WithErrorBound x = bounded({1, 1.0001}, {0.001, 0.001});
  x.value.type.shape = {1, 1, 1, 2};
  const std::vector<std::int64_t> one = {1, 1}, kernel = {1, 2}, none = {0, 0};
  const Attrs attrs = {{"kernel", kernel}, {"stride", one}, {"padding", none}, {"dilation", one}};
  EXPECT_EQ(apply(ops::max_pool_index, {x}, attrs).error[0], 1);
  x.error = {0, 0};
  EXPECT_EQ(apply(ops::max_pool_index, {x}, attrs).error[0], 0);
}

TEST(WithErrorBound, step_of_a_function_does_not_count_as_rounding) {
  EXPECT_LT(apply(ops::floor, {bounded({3})}).error[0], 0.01);
}

TEST(WithErrorBound, near_ties_of_argmax_may_go_either_way) {
  const Attrs rows = {{"axes", std::vector<std::int64_t>{0}}};
  EXPECT_EQ(apply(ops::argmax, {bounded({1, 1.5, 1}, {0.1, 0.1, 0.1})}, rows).error[0], 0);
  EXPECT_GT(apply(ops::argmax, {bounded({1.45, 1.5, 1}, {0.1, 0.1, 0.1})}, rows).error[0], 0);
}

TEST(WithErrorBound, differences_of_nan_and_of_overflow) {
  const double inf = INFINITY, nan = NAN;
  EXPECT_FALSE(first_difference(bounded({nan}), {nan}));
  EXPECT_TRUE(first_difference(bounded({nan}), {1}));
  EXPECT_TRUE(first_difference(bounded({1}), {nan}));
  EXPECT_TRUE(first_difference(bounded({1}), {inf}));
  EXPECT_FALSE(first_difference(bounded({3.4e38}, {1e37}), {inf}));
  EXPECT_TRUE(first_difference(bounded({3.4e38}, {1e37}), {-inf}));
  const auto found = first_difference(bounded({1, 2, 3}, {0.1, 0.1, 0.1}), {1.05, 2.2, 9});
  ASSERT_TRUE(found);
  EXPECT_EQ(to_string(*found, {3, 1}),
            "element 1 [1,0] is 2.2, expected 2 (rounding explains 0.1)");
}

}  // namespace
}  // namespace tensorgrad::testing
