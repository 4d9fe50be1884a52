// SPDX-License-Identifier: MIT
// The public view of graphs of functions and steps: nodes, their inputs, shapes, names and lines.
#include <set>

#include <gmock/gmock.h>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Scaled {
  Parameter scale{{3}, init::ones()};
  Buffer seen{{}};
  TG_MODULE(scale, seen)
};

int difference_line = 0;  // of the function below
Tensor scaled_difference(const Scaled& net, const Inputs& in) {
  net.seen.set(net.seen.tensor() + 1.0);
  difference_line = __LINE__ + 1;
  const Tensor difference = in["y"] - in["x"];
  return sum(where(in["x"] < in["y"], difference, net.scale), {1});
}

FunctionOptions view_options(std::int64_t rows) {
  return {.inputs = {{"x", {rows, 3}}, {"y", {rows, 3}}}, .device = {.kind = "cpu"}};
}

std::vector<int> nodes_of(const GraphView& graph, const std::string& op) {
  std::vector<int> found;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op == op) found.push_back(static_cast<int>(i));
  }
  return found;
}

const GraphNode& node_of(const GraphView& graph, int index) {
  return graph.nodes.at(static_cast<std::size_t>(index));
}

TEST(GraphView, shows_ops_inputs_shapes_names_and_lines) {
  const CompiledFunction forward = compile_function(Scaled{}, scaled_difference, view_options(4));
  const GraphView graph = forward.graph();
  const int x = graph.leaf("input", "x"), y = graph.leaf("input", "y");
  const int scale = graph.leaf("parameter", "scale"), seen = graph.leaf("state", "seen");
  EXPECT_EQ(node_of(graph, x).shape, (Shape{4, 3}));
  EXPECT_EQ(node_of(graph, scale).shape, (Shape{3}));

  // Inputs are in the order of the operands of the op.
  const std::vector<int> subs = nodes_of(graph, "sub");
  ASSERT_EQ(subs.size(), 1U);
  const GraphNode& sub = node_of(graph, subs[0]);
  EXPECT_THAT(sub.inputs, ElementsAre(y, x));
  EXPECT_EQ(sub.location.line, static_cast<unsigned>(difference_line));
  EXPECT_THAT(std::string(sub.location.file), HasSubstr("graph_view_test.cpp"));
  const std::vector<int> less = nodes_of(graph, "lt"), choices = nodes_of(graph, "where");
  ASSERT_EQ(less.size(), 1U);
  EXPECT_EQ(node_of(graph, less[0]).dtype, DType::kBool);
  EXPECT_THAT(node_of(graph, less[0]).inputs, ElementsAre(x, y));
  ASSERT_EQ(choices.size(), 1U);
  ASSERT_EQ(node_of(graph, choices[0]).inputs.size(), 3U);
  EXPECT_EQ(node_of(graph, choices[0]).inputs[0], less[0]);
  EXPECT_EQ(node_of(graph, choices[0]).inputs[1], subs[0]);
  const std::vector<int> sums = nodes_of(graph, "sum");
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_THAT(node_of(graph, sums[0]).inputs, ElementsAre(choices[0]));
  EXPECT_THAT(node_of(graph, sums[0]).attributes, ElementsAre(std::pair("axes", "[1]")));

  ASSERT_EQ(graph.outputs.size(), 1U);
  EXPECT_EQ(graph.outputs[0].first, "output");
  ASSERT_EQ(graph.updates.size(), 1U);
  EXPECT_EQ(graph.updates[0].first, seen);
  EXPECT_EQ(node_of(graph, graph.updates[0].second).op, "add");

  const auto users = graph.users();
  EXPECT_THAT(users.at(static_cast<std::size_t>(x)), ElementsAre(subs[0], less[0]));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const int input : graph.nodes[i].inputs) EXPECT_LT(input, static_cast<int>(i));
  }
}

TEST(GraphView, of_a_dynamic_size_is_traced_for_that_size) {
  FunctionOptions options = view_options(kDynamic);
  options.dynamic_size = 2;
  CompiledFunction forward = compile_function(Scaled{}, scaled_difference, options);
  const auto rows = [](const GraphView& graph) {
    return node_of(graph, graph.leaf("input", "x")).shape.at(0);
  };
  EXPECT_EQ(rows(forward.graph()), 2);
  EXPECT_EQ(rows(forward.graph(GraphStage::kTraced, 7)), 7);
  EXPECT_THAT(forward.compiled_sizes(), ElementsAre(2));  // tracing compiled nothing
  EXPECT_EQ(rows(forward.graph(GraphStage::kSimplified, 7)), 7);
  EXPECT_THAT(forward.compiled_sizes(), ElementsAre(2, 7));
}

TEST(GraphView, of_a_step_has_gradients_and_the_optimizer) {
  CompileOptions options;
  options.inputs = {{"x", {4, 2}}, {"y", {4, 1}}};
  options.optimizer = optim::AdamW{.lr = 0.01};
  const auto trainer = trace(
      nn::Linear(2, 1),
      [](const nn::Linear& net, const Inputs& in) {
        return mse(gelu(net(in["x"])) + 0.0 * in["y"], in["y"]);
      },
      options);
  const GraphView traced = trainer.graph(), computed = trainer.graph(GraphStage::kSimplified);
  std::set<std::string> origins;
  for (const GraphNode& node : traced.nodes) origins.insert(node.origin);
  EXPECT_TRUE(origins.contains("gelu"));
  EXPECT_TRUE(origins.contains("optimizer")) << ::testing::PrintToString(origins);
  EXPECT_THAT(traced.updates, ::testing::Not(IsEmpty()));
  ASSERT_EQ(traced.outputs.size(), 1U);
  EXPECT_EQ(traced.outputs[0].first, "loss");
  EXPECT_EQ(computed.outputs[0].first, "loss");
  EXPECT_LT(computed.nodes.size(), traced.nodes.size());
  // The text describes the same graph.
  const std::vector<std::string> passes = ir::passes();
  EXPECT_EQ(ir::optimize(traced.text, "traced", {}), traced.text);
  EXPECT_EQ(ir::optimize(traced.text, "traced", {passes.begin(), passes.end() - 1}), computed.text);
}

TEST(GraphView, is_of_one_objective_of_several) {
  CompileOptions options;
  options.inputs = {{"x", {4, 2}}};
  options.optimizer = optim::SGD{.lr = 0.01};
  const auto first = [](const nn::Linear& net, const Inputs& in) { return mean(net(in["x"])); };
  const auto second = [](const nn::Linear& net, const Inputs& in) {
    return mean(exp(net(in["x"])));
  };
  const auto trainer =
      trace(nn::Linear(2, 1), {{.name = "plain", .loss = first, .options = options},
                               {.name = "grown", .loss = second, .options = options}});
  EXPECT_THAT(nodes_of(trainer["plain"].graph(), "exp"), IsEmpty());
  EXPECT_THAT(nodes_of(trainer["grown"].graph(), "exp").size(), 1U);
}

TEST(GraphView, lists_the_leaves) {
  const CompiledFunction forward = compile_function(Scaled{}, scaled_difference, view_options(4));
  try {
    static_cast<void>(forward.graph().leaf("input", "z"));
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(), "unknown input 'z'; available: x, y");
    EXPECT_EQ(error.location().line, static_cast<unsigned>(__LINE__ - 4));
  }
}

}  // namespace
}  // namespace tensorgrad::testing
