// SPDX-License-Identifier: MIT
// The sum of a bias gradient is computed by the launch of the weight gradient. If all gradients
// together exceed a binding, it is a separate launch that returns the same values.
#include <algorithm>

#include "ops/registry.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

// The arena has kBefore other elements before the parameters, so only the arena exceeds the limit.
constexpr std::int64_t kBefore = 100000, kNoLimit = 0, kBelowArena = 256 << 10;

std::vector<Launch> launches_within(const Graph& graph, std::int64_t limit) {
  return compile_for_test(graph, 8, limit).program.launches;
}

std::int64_t with_sums(const std::vector<Launch>& launches) {
  return std::count_if(launches.begin(), launches.end(), [](const Launch& launch) {
    const auto* product = launch.find<ContractionLaunch>();
    return product != nullptr && product->has_bias_grad();
  });
}

void check_sums(GraphBuilder& s, std::int64_t sums, Where where) {
  const std::vector<Launch> merged = launches_within(s.graph(), kNoLimit),
                            apart = launches_within(s.graph(), kBelowArena);
  EXPECT_EQ(with_sums(merged), sums);
  EXPECT_EQ(with_sums(apart), 0);
  EXPECT_EQ(static_cast<std::int64_t>(apart.size()),
            static_cast<std::int64_t>(merged.size()) + sums);
  EXPECT_TRUE(std::all_of(apart.begin(), apart.end(),
                          [](const Launch& launch) { return launch.row_count == 0; }));
  const ValueMap wanted = interpret_graph(s.graph(), s.leaves);
  for (const std::int64_t limit : {kNoLimit, kBelowArena}) {
    expect_close(s.graph(), run_graph(s.graph(), s.leaves, where, 8, limit), wanted, 3e-5,
                 to_string(where) + " within " + std::to_string(limit));
  }
}

Tensor parameter(GraphBuilder& s, const std::string& name, const Shape& shape,
                 std::int64_t offset) {
  return s.leaf(ops::parameter, name, shape, f32, s.draw.values(f32, numel(shape), -0.5, 0.5),
                kBefore + offset);
}

// Gradients of two layers of a classifier.
void check_layers(Where where) {
  constexpr std::int64_t kRows = 70, kIn = 33, kHidden = 40, kOut = 10;
  GraphBuilder s;
  const Tensor x = s.input({kRows, kIn}, -1, 1), target = s.input({kRows}, 0, kOut - 1, i32);
  const Tensor w1 = parameter(s, "w1", {kHidden, kIn}, 0), b1 = parameter(s, "b1", {kHidden}, 2048),
               w2 = parameter(s, "w2", {kOut, kHidden}, 4096),
               b2 = parameter(s, "b2", {kOut}, 8192);
  const Tensor loss = cross_entropy(linear(tanh(linear(x, w1, b1)), w2, b2), target);
  const std::vector<Tensor> grads = grad(loss, {w1, b1, w2, b2});
  s.output("loss", loss);
  for (std::size_t i = 0; i < grads.size(); ++i) s.output("d" + std::to_string(i), grads[i]);
  check_sums(s, 2, where);
}
TEST(ColumnSums, of_layers_beside_their_weights_or_apart_on_cpu) { check_layers(Where::kCpu); }
TEST(ColumnSums, of_layers_beside_their_weights_or_apart_on_webgpu) {
  check_layers(Where::kWebGpu);
}

// Sums of the left or of the right operand, each with further ops on product and sum.
void check_operands(Where where) {
  for (const bool of_left : {false, true}) {
    SCOPED_TRACE(of_left);
    GraphBuilder s;
    const Tensor a = s.input({90, 37}), b = s.input({90, 24}), w = parameter(s, "w", {37, 24}, 0);
    s.output("product", matmul(transpose(a), b) * 0.5 + w);
    s.output("sum", sum(of_left ? a : b, {0}));
    check_sums(s, 1, where);
  }
}
TEST(ColumnSums, of_either_operand_beside_the_product_or_apart_on_cpu) {
  check_operands(Where::kCpu);
}
TEST(ColumnSums, of_either_operand_beside_the_product_or_apart_on_webgpu) {
  check_operands(Where::kWebGpu);
}

}  // namespace
}  // namespace tensorgrad::testing
