// SPDX-License-Identifier: MIT
// Bisect names the first pass that changes a result, or the op that a device computes wrongly.
#include <gmock/gmock.h>

#include "compile/debug/bisect.h"
#include "debug/wrong_device.h"
#include "ops/expr.h"
#include "ops/registry.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;

BisectReport run(const Graph& graph, const BisectOptions& options) {
  return bisect(graph, fill_leaves(graph, {}, 2), options);
}

void tanh_of_products(GraphBuilder& builder) {
  const Tensor x = builder.input({4, 8}) * 1.0, w = builder.input({8, 5});
  builder.output("total", sum(tanh(matmul(x, w) - 0.5), {0}));
}

TEST(Bisect, finds_nothing_in_correct_graphs) {
  for (std::uint64_t seed = 1; seed <= (kSanitized ? 3 : 8); ++seed) {
    const RandomGraph random = random_graph(seed);
    BisectOptions options;
    options.b = device_at(Where::kCpu);
    const BisectReport report = run(random.graph, options);
    EXPECT_EQ(report.pass, "") << "seed " << seed << ": " << report.what;
    // The graph as given, the graph passes, and split_k_to_binding_limit (required by the limits of
    // the CPU), rematerialize and fuse.
    EXPECT_EQ(report.checked.size(), graph_passes().size() + 4);
  }
}

TEST(Bisect, finds_nothing_between_cpu_and_webgpu) {
  for (std::uint64_t seed = 1; seed <= (kSanitized ? 1 : 3); ++seed) {
    const RandomGraph random = random_graph(seed);
    BisectOptions options;
    options.a = device_at(Where::kCpu);
    options.b = device_at(Where::kWebGpu);
    const BisectReport report = run(random.graph, options);
    EXPECT_EQ(report.pass, "") << "seed " << seed << ": " << report.what;
  }
}

TEST(Bisect, finds_nothing_in_composites) {
  GraphBuilder builder;
  const Tensor x = builder.input({2, 2, 6, 6}), w = builder.input({3, 2, 3, 3});
  const Tensor y = max_pool2d(relu(conv2d(x, w, std::nullopt, {.padding = 1})), 2);
  builder.output("y", y);
  builder.output("dw", grad(sum(square(y)), {w})[0]);
  BisectOptions options;
  options.b = device_at(Where::kCpu);
  const BisectReport report = run(builder.graph(), options);
  EXPECT_EQ(report.pass, "") << report.what;
}

TEST(Bisect, names_the_pass_that_changes_a_result) {
  GraphBuilder builder;
  tanh_of_products(builder);
  const auto wrong = [](const Graph& graph) {
    return rewrite_graph(graph, [](Graph& out, const Node& node) {
      if (node.op != &ops::sub) return kNoValue;
      return out.add(ops::add, node.inputs, node.attrs, node.location, node.origin);
    });
  };
  std::vector<GraphPass> passes(graph_passes().begin(), graph_passes().end());
  passes.insert(passes.begin() + 2, {"turn_signs", wrong});
  BisectOptions options;
  options.b = device_at(Where::kCpu);
  options.passes = passes;
  const BisectReport report = run(builder.graph(), options);
  EXPECT_EQ(report.pass, "turn_signs");
  EXPECT_THAT(report.what, HasSubstr("the pass changes what the graph means: total, %"));
  EXPECT_THAT(report.what, HasSubstr("element 0 [0] is "));
  EXPECT_THAT(report.location.file, EndsWith("bisect_test.cpp"));
  EXPECT_EQ(report.checked.back(), "turn_signs: different");
}

// The first graph is exact. If a pass replaces it with one that rounds, that is no error.
TEST(Bisect, allows_a_pass_to_round_exact_values) {
  GraphBuilder builder;
  builder.output("y", reshape(builder.input({8, 8}), {64}));
  const auto scaled = [](const Graph& graph) {
    return rewrite_graph(graph, [](Graph& out, const Node& node) {
      if (node.op != &ops::reshape) return kNoValue;
      Builder rewriter{out, node.location, node.origin};
      return op::reshape(Expr{&rewriter, node.inputs[0]} * 0.1 * 10.0, node.type.shape).id;
    });
  };
  const std::vector<GraphPass> passes = {{"scale", scaled}};
  BisectOptions options;
  options.b = device_at(Where::kCpu);
  options.passes = passes;
  const BisectReport report = run(builder.graph(), options);
  EXPECT_EQ(report.pass, "") << report.what;
  EXPECT_THAT(report.checked, Contains("scale: the same"));
}

TEST(Bisect, applies_the_splits_of_the_device) {
  GraphBuilder builder;
  builder.output("sum", sum(builder.input({65536})));
  const auto device = std::make_shared<RecordingDevice>(make_cpu_device({.threads = 1}));
  device->told.cuts_rows = false;
  device->told.limits.max_binding_bytes = 1 << 16;
  BisectOptions options;
  options.b = device;
  // Without the split, the buffer exceeds a binding.
  EXPECT_THROW(run(builder.graph(), options), UserError);
  device->told.limits.max_binding_bytes = 1 << 18;
  const BisectReport report = run(builder.graph(), options);
  EXPECT_EQ(report.pass, "") << report.what;
  EXPECT_THAT(report.checked, Contains("split_k_to_binding_limit: unchanged"));
  EXPECT_THAT(report.checked, Contains("split_reduce: the same"));
  EXPECT_EQ(device->programs.front().launches.size(), 1U) << "as given";
}

TEST(Bisect, names_the_op_that_a_device_computes_wrongly) {
  GraphBuilder builder;
  tanh_of_products(builder);
  BisectOptions options;
  options.b = std::make_shared<WrongDevice>(ops::tanh, ops::sigmoid);
  const BisectReport report = run(builder.graph(), options);
  EXPECT_EQ(report.pass, "as given");
  EXPECT_THAT(report.what, HasSubstr(" = tanh(%"));
  EXPECT_THAT(report.what, HasSubstr("on cpu, element 0 [0,0] is "));
  EXPECT_THAT(report.location.file, EndsWith("bisect_test.cpp"));
}

TEST(Bisect, names_the_launch_that_is_wrong_only_when_fused) {
  GraphBuilder builder;
  tanh_of_products(builder);
  BisectOptions options;
  options.b = std::make_shared<WrongDevice>(ops::tanh, ops::sigmoid, 2);
  const BisectReport report = run(builder.graph(), options);
  EXPECT_EQ(report.pass, "fuse");
  EXPECT_THAT(report.what, HasSubstr("shadow: launch 0 (matmul_"));
  EXPECT_THAT(report.what, HasSubstr("stores a wrong "));
}

}  // namespace
}  // namespace tensorgrad::testing
