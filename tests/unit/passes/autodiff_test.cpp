// SPDX-License-Identifier: MIT
// Properties of autodiff beyond its rules: types, lines, and values that do not affect the loss.
#include "passes/autodiff.h"

#include <gtest/gtest.h>

#include "passes/simplify.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

TEST(Autodiff, gradients_have_the_type_of_their_values) {
  GraphBuilder s;
  const Tensor a = s.input({2, 3}), b = s.input({3}), unused = s.input({5});
  const Tensor inner = a * b;
  const Tensor loss = sum(exp(inner));
  const std::vector<Tensor> grads = grad(loss, {a, b, unused, inner, loss});
  ASSERT_EQ(grads.size(), 5U);
  EXPECT_EQ(grads[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(grads[1].shape(), (Shape{3}));
  EXPECT_EQ(grads[2].shape(), (Shape{5}));
  EXPECT_EQ(grads[3].shape(), (Shape{2, 3}));
  EXPECT_EQ(grads[4].shape(), Shape{});
  for (std::size_t i = 0; i < grads.size(); ++i) s.output("d" + std::to_string(i), grads[i]);
  const ValueMap got = interpret_graph(s.graph(), s.leaves);
  EXPECT_EQ(got.at("d2"), Values(5, 0));
  EXPECT_EQ(got.at("d4"), Values{1});
}

TEST(Autodiff, gradients_have_the_line_and_name_of_their_ops) {
  GraphBuilder s;
  const Tensor x = s.input({3});
  const unsigned line = __LINE__ + 1;
  const Tensor y = softsign(x);
  const auto forward = s.graph().size();
  static_cast<void>(grad(sum(y), {x}));
  int of_softsign = 0;
  for (ValueId id = forward; id < s.graph().size(); ++id) {
    const Node& node = s.graph()[id];
    if (node.origin != "softsign.grad") continue;
    EXPECT_EQ(node.location.line, line);
    ++of_softsign;
  }
  EXPECT_GT(of_softsign, 3);
}

// The derivatives of x^3 are 3 x^2 and 6 x. Gradients are ops like any other.
TEST(Autodiff, can_be_applied_to_its_own_result) {
  GraphBuilder s;
  const Tensor x = s.input({3}, f32, {1, 2, -3});
  const Tensor first = grad(sum(x * x * x), {x})[0];
  s.output("second", grad(sum(first), {x})[0]);
  EXPECT_EQ(interpret_graph(s.graph(), s.leaves).at("second"), (Values{6, 12, -18}));
}

TEST(Passes, are_idempotent) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GraphBuilder s(seed);
    const Tensor x = s.input({4, 3});
    const Tensor loss = mean(cross_entropy(layer_norm(x) * 1.0 + 0.0, zeros({4}, i32)));
    s.output("dx", grad(loss, {x})[0]);
    const Graph clean = dce(cse(s.graph()));
    EXPECT_EQ(hash(dce(cse(clean))), hash(clean)) << seed;
    const Graph folded = fold(clean);
    EXPECT_EQ(hash(fold(folded)), hash(folded)) << seed;
  }
}

}  // namespace
}  // namespace tensorgrad::testing
