// SPDX-License-Identifier: MIT
// Windows of sharded parameters and gradients, and the steps of the host between launches.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "compile/compile.h"
#include "ops/expr.h"
#include "ops/registry.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kWidth = 16, kLayer = kWidth * kWidth;

// Returns a training step of `layers` products with a weight each. Each rank has one of two shards.
CompileRequest deep_request(GraphBuilder& s, int layers, std::vector<ParameterBucket> buckets) {
  Tensor x = s.input({4, kWidth});
  CompileRequest request;
  for (int i = 0; i < layers; ++i) {
    const Tensor weight =
        s.leaf(ops::parameter, "w" + std::to_string(i), {kWidth, kWidth}, f32, {}, i * kLayer);
    request.wrt.push_back(weight.id());
    x = relu(matmul(x, weight));
  }
  const Tensor loss = mean(square(x));
  s.output("loss", loss);
  request.loss = loss.id();
  request.graph = s.graph();
  const std::int64_t all = buckets.back().end();
  request.extend = [layers, all](Graph& graph, const std::vector<ValueId>& grads) {
    Builder builder{graph, {}, "optimizer"};
    std::vector<Expr> parts;
    std::vector<std::int64_t> offsets;
    for (int i = 0; i < layers; ++i) {
      parts.push_back({&builder, grads[static_cast<std::size_t>(i)]});
      offsets.push_back(i * kLayer);
    }
    const Expr grad = op::apply(builder, ops::reduce_scatter, parts,
                                {{"offsets", offsets}, {"size", all}, {"shards", 2}});
    const Expr param = op::apply(builder, ops::arena, {},
                                 {{"name", "params"},
                                  {"shape", Shape{all / 2}},
                                  {"dtype", static_cast<std::int64_t>(DType::kF32)},
                                  {"offset", 0}});
    graph.updates.push_back({param.id, (param - grad).id});
  };
  request.in_parts = true;
  request.plan.params_elements = all / 2;
  request.plan.buckets = std::move(buckets);
  request.plan.shards = 2;
  return request;
}

// Returns the steps of the host and the launches in order, such as "gather 0" and "launch".
std::vector<std::string> order_of(const Program& program) {
  std::vector<std::string> order;
  std::size_t at = 0;
  for (const HostStep& step : program.host_steps) {
    if (step.before > at) order.emplace_back("run");
    at = step.before;
    order.push_back((step.kind == HostStep::Kind::kGather ? "gather " : "reduce ") +
                    std::to_string(step.bucket));
  }
  if (at < program.launches.size()) order.emplace_back("run");
  return order;
}

std::int64_t bytes_of(const Program& program, const std::string& text) {
  std::int64_t bytes = 0;
  for (const BufferDecl& buffer : program.buffers)
    bytes += buffer.name.find(text) == std::string::npos ? 0 : buffer.bytes;
  return bytes;
}

TEST(Buckets, are_gathered_before_each_pass_and_reduced_behind_their_gradients) {
  GraphBuilder s;
  const Program program =
      compile_graph(deep_request(s, 3, {{0, kLayer}, {kLayer, kLayer}, {2 * kLayer, kLayer}}))
          .program;
  // The window still has the last layer's weight. Of the others, the backward pass needs only the
  // second one, after its gradient.
  EXPECT_THAT(order_of(program),
              ElementsAre("gather 0", "run", "gather 1", "run", "gather 2", "run", "reduce 2",
                          "run", "reduce 1", "gather 1", "run", "reduce 0", "run"));
  EXPECT_EQ(bytes_of(program, "params"), 3 * kLayer * 4 / 2);
  EXPECT_EQ(bytes_of(program, "slot window"), kLayer * 4);
  EXPECT_EQ(bytes_of(program, "grads window"), kLayer * 4);
  EXPECT_EQ(bytes_of(program, "grads"), kLayer * 4 + 3 * kLayer * 4 / 2);
  EXPECT_NE(print(program).find("    host: gather bucket 1 into slot window 0\n"),
            std::string::npos);
  EXPECT_NE(print(program).find("    host: reduce bucket 1 in grads window 0\n"),
            std::string::npos);
}

TEST(Buckets, of_several_layers_stay_for_all_of_them) {
  GraphBuilder s;
  const Program program =
      compile_graph(deep_request(s, 4, {{0, 2 * kLayer}, {2 * kLayer, 2 * kLayer}})).program;
  EXPECT_THAT(order_of(program), ElementsAre("gather 0", "run", "gather 1", "run", "reduce 1",
                                             "run", "gather 0", "run", "reduce 0", "run"));
  EXPECT_EQ(bytes_of(program, "slot window"), 2 * kLayer * 4);
}

TEST(Buckets, that_one_launch_reads_have_windows_of_their_own) {
  GraphBuilder s;
  const auto leaf = [&](int i) {
    return s.leaf(ops::parameter, "w" + std::to_string(i), {128}, f32, {}, i * 128);
  };
  s.output("y", leaf(0) * leaf(1) + leaf(2));
  CompileRequest request;
  request.graph = s.graph();
  request.plan.params_elements = 64 + 128;
  request.plan.buckets = {{0, 128}, {128, 128}};  // the third one is not sharded
  request.plan.shards = 4;
  const Program program = compile_graph(std::move(request)).program;
  EXPECT_THAT(order_of(program), ElementsAre("gather 0", "gather 1", "run"));
  EXPECT_EQ(bytes_of(program, "slot window"), 2 * 128 * 4);
  ASSERT_EQ(program.launches.size(), 1U);
  std::int64_t third = -1;  // behind the shards of the buckets
  for (const Binding& binding : program.launches[0].bindings) {
    if (program.buffers[static_cast<std::size_t>(binding.buffer)].kind == BufferKind::kParams)
      third = program.launches[0].body.accesses[2].map.views[0].offset;
  }
  EXPECT_EQ(third, 64);
}

TEST(Buckets, exceed_a_budget_with_the_names_of_the_tensors) {
  GraphBuilder s;
  CompileRequest request = deep_request(s, 3, {{0, 3 * kLayer}});
  request.plan.memory_budget = 1;
  try {
    compile_graph(std::move(request));
    ADD_FAILURE() << "planned";
  } catch (const UserError& error) {
    EXPECT_NE(error.message().find("memory budget: the plan needs "), std::string::npos);
    EXPECT_NE(error.message().find(" 1536 bytes: parameters f32[384]"), std::string::npos)
        << error.message();
    EXPECT_NE(error.message().find(" 1024 bytes: parameter f32[16,16]"), std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace tensorgrad::testing
