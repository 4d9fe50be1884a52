// SPDX-License-Identifier: MIT
// Convolution and pooling: the number of launches, and the values that are stored.
#include <gmock/gmock.h>

#include "ops/registry.h"
#include "passes/decompose.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

std::vector<std::string> names(const Program& program) {
  std::vector<std::string> list;
  for (const Launch& launch : program.launches) list.push_back(launch.name);
  return list;
}

std::int64_t largest_slot(const Program& program) {
  std::int64_t most = 0;
  for (const BufferDecl& buffer : program.buffers) {
    if (buffer.kind == BufferKind::kSlot) most = std::max(most, buffer.bytes);
  }
  return most;
}

TEST(Conv2d, with_bias_and_relu_is_one_launch) {
  GraphBuilder s;
  const Tensor x = s.input({8, 16, 12, 12}), w = s.input({32, 16, 3, 3}), b = s.input({32});
  s.output("y", relu(conv2d(x, w, b)));
  const Compiled compiled = compile_for_test(s.graph(), 8);
  EXPECT_THAT(names(compiled.program), ::testing::ElementsAre("conv2d_relu"));
}

TEST(Conv2d, with_padding_copies_its_input_once) {
  GraphBuilder s;
  const Tensor x = s.input({8, 16, 12, 12}), w = s.input({32, 16, 3, 3}), b = s.input({32});
  s.output("y", relu(conv2d(x, w, b, {.padding = 1})));
  const Program program = compile_for_test(s.graph(), 8).program;
  ASSERT_EQ(program.launches.size(), 2U);
  EXPECT_TRUE(program.launches[0].is<MapLaunch>());
  EXPECT_TRUE(program.launches[1].is<ContractionLaunch>());
  EXPECT_EQ(largest_slot(program), 8 * 16 * 14 * 14 * 4);
}

// The windows have 9 times as many elements as x. No tensor of that size is stored.
TEST(Conv2d, stores_no_windows_forwards_or_backwards) {
  GraphBuilder s;
  const Tensor x = s.input({8, 16, 12, 12}), w = s.input({16, 16, 3, 3}), b = s.input({16});
  const Tensor hidden = tanh(x);
  const Tensor y = conv2d(hidden, w, b, {.padding = 1});
  const std::vector<Tensor> d = grad(sum(square(y)), {x, w, b});
  for (std::size_t i = 0; i < d.size(); ++i) s.output("d" + std::to_string(i), d[i]);
  const Program program = compile_for_test(s.graph(), 8).program;
  EXPECT_LE(largest_slot(program), 8 * 16 * 14 * 14 * 4);
  s.check(Where::kCpu, 1e-4);
}

// Patches of 16 pixels. If the gradient of the image were computed, it would have 2^33 elements.
TEST(Conv2d, makes_no_gradient_that_nobody_needs) {
  GraphBuilder s;
  const Tensor x = s.input({4, 3, 224, 224}), w = s.input({192, 3, 16, 16});
  s.output("dw", grad(sum(square(conv2d(x, w, {}, {.stride = 16}))), {w})[0]);
  EXPECT_LE(largest_slot(compile_for_test(s.graph(), 8).program), 4 * 3 * 224 * 224 * 4);
}

// The weight gradient is a batch of products, one per image, so that threads or workgroups share
// the work. The products are added in order.
TEST(Conv2d, splits_the_weight_gradient_only_by_shape) {
  GraphBuilder s;
  const Tensor x = s.input({64, 4, 8, 8}), w = s.input({8, 4, 3, 3});
  s.output("dw", grad(sum(conv2d(x, w)), {w})[0]);
  bool batched = false;
  for (const Launch& launch : compile_for_test(s.graph(), 8).program.launches) {
    if (const auto* p = launch.find<ContractionLaunch>()) batched = p->batch == 64 && p->k == 36;
  }
  EXPECT_TRUE(batched);
}

TEST(MaxPool2d, is_one_launch_with_its_index) {
  GraphBuilder s;
  const Tensor x = s.input({2, 3, 8, 8});
  const Tensor y = max_pool2d(x, 2);
  s.output("y", y);
  s.output("dx", grad(sum(square(y)), {x})[0]);
  EXPECT_EQ(compile_for_test(s.graph(), 8).program.launches.size(), 2U);
}

TEST(Expand, keeps_the_users_line_and_name) {
  GraphBuilder s;
  const Tensor x = s.input({1, 2, 5, 5}), w = s.input({3, 2, 3, 3});
  const unsigned line = __LINE__ + 1;
  const Tensor y = conv2d(x, w);
  s.output("y", y);
  const Graph graph = expand(s.graph());
  int nodes = 0;
  for (const Node& node : graph.nodes) {
    EXPECT_NE(node.op->kind, OpKind::kComposite);
    if (node.inputs.empty()) continue;
    EXPECT_EQ(node.origin, "conv2d");
    EXPECT_EQ(node.location.line, line);
    ++nodes;
  }
  EXPECT_GT(nodes, 4);
}

TEST(Expand, cannot_be_skipped) {
  GraphBuilder s;
  const Tensor x = s.input({1, 1, 4, 4});
  s.output("y", max_pool2d(x, 2));
  {
    const ScopedEnv skip("TENSORGRAD_SKIP", "expand");
    EXPECT_THROW(compile_for_test(s.graph(), 8), UserError);
  }
  CompileRequest request;
  request.graph = s.graph();
  request.skip = pass_names();
  EXPECT_NO_THROW(compile_graph(request));
}

}  // namespace
}  // namespace tensorgrad::testing
