// SPDX-License-Identifier: MIT
// The structure of ONNX models with a dynamic dimension. tests/onnx tests their results.
#include <algorithm>

#include "onnx/convert.h"
#include "ops/registry.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

using Function = std::function<Tensor(Tensor x)>;
const onnx::LeafValues kNoLeaves = [](const Node&) { return std::span<const std::byte>(); };

// Returns the model of `function` for x [n, 4], from graphs with n = 3, 7 and 10.
io::OnnxModel open_model(const Function& function) {
  std::vector<onnx::SizedGraph> graphs;
  for (const std::int64_t n : {3, 7, 10}) {
    GraphBuilder builder;
    const Tensor x = builder.leaf(ops::input, "x", {n, 4}, f32, Values(4 * n));
    builder.output("y", function(x));
    graphs.push_back({n, builder.graph(), kNoLeaves});
  }
  return onnx::to_onnx(graphs, "n", {"model", ""});
}

std::vector<std::string> operators_of(const io::OnnxModel& model) {
  std::vector<std::string> names;
  for (const io::OnnxNode& node : model.graph.nodes) names.push_back(node.op);
  return names;
}

using Names = std::vector<std::string>;

TEST(OnnxDynamicSize, has_a_name_wherever_it_is_on_a_line) {
  const io::OnnxModel model = open_model([](Tensor x) {
    return concat({x, pad(x, {0, 0, 1, 0})}, 0);  // 2 n + 1 rows
  });
  EXPECT_EQ(model.graph.inputs[0].shape, (Shape{io::kUnknownSize, 4}));
  EXPECT_EQ(model.graph.inputs[0].sizes, (Names{"n", ""}));
  EXPECT_EQ(model.graph.outputs[0].shape, (Shape{io::kUnknownSize, 4}));
  EXPECT_EQ(model.graph.outputs[0].sizes, (Names{"2*n+1", ""}));
  EXPECT_EQ(operators_of(model), (Names{"Pad", "Concat"}));
}

TEST(OnnxDynamicSize, has_no_name_if_not_on_a_line) {
  const io::OnnxModel model = open_model([](Tensor x) { return flatten(matmul(x, transpose(x))); });
  EXPECT_EQ(model.graph.outputs[0].shape, (Shape{io::kUnknownSize}));
  EXPECT_EQ(model.graph.outputs[0].sizes, (Names{""}));
}

TEST(OnnxDynamicSize, is_inferred_by_reshape_if_possible) {
  const io::OnnxModel model = open_model([](Tensor x) { return reshape(x, {x.size(0) * 2, 2}); });
  EXPECT_EQ(operators_of(model), (Names{"Reshape"}));
  ASSERT_EQ(model.graph.initializers.size(), 1U);  // those of the separate models are gone
  const std::span<const std::byte> data = model.graph.initializers[0].data;
  std::int64_t shape[2];
  ASSERT_EQ(data.size(), sizeof shape);
  std::ranges::copy(data, reinterpret_cast<std::byte*>(shape));
  EXPECT_EQ(shape[0], -1);
  EXPECT_EQ(shape[1], 2);
}

TEST(OnnxDynamicSize, is_read_once_of_the_input_that_has_it) {
  const io::OnnxModel model = open_model([](Tensor x) {
    return reshape(x, {1, x.size(0), 4, 1}) * 0.5 + mean(x) + static_cast<double>(x.size(0));
  });
  const Names names = operators_of(model);
  EXPECT_EQ(names[0], "Shape");
  EXPECT_EQ(names[1], "Squeeze");
  EXPECT_EQ(std::ranges::count(names, "Shape"), 1);
  EXPECT_EQ(std::ranges::count(names, "Div"), 1);
  EXPECT_EQ(model.graph.nodes[0].inputs, (Names{"x"}));
  EXPECT_EQ(model.graph.nodes[0].name, "n/Shape");
}

}  // namespace
}  // namespace tensorgrad::testing
