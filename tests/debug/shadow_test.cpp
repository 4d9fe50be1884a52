// SPDX-License-Identifier: MIT
// The shadow run accepts correct programs on every device and pinpoints errors in others.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "compile/debug/graph_run.h"
#include "debug/wrong_device.h"
#include "support/random_graph.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// Runs the graph once with the shadow, after `change` has modified the program.
void run_shadowed(const Graph& graph, const std::shared_ptr<Device>& device,
                  const std::function<void(Program&)>& change = {},
                  std::int64_t most_binding_bytes = 0) {
  const LeafWords leaves = fill_leaves(graph, {}, 1);
  CompileRequest request;
  request.graph = graph;
  request.fusing.max_bindings = device->info().limits.max_storage_bindings;
  request.plan.params_elements = static_cast<std::int64_t>(leaves.params.size());
  request.plan.max_binding_bytes = most_binding_bytes;
  const PlanOptions plan = request.plan;
  Compiled compiled = compile_graph(std::move(request));
  if (change) change(compiled.program);
  Instance instance(device, compiled.program);
  for (const Port& port : compiled.program.inputs) {
    instance.upload(compiled.program.buffers[static_cast<std::size_t>(port.buffer)].name, 0,
                    std::as_bytes(std::span(leaves.by_name.at(port.name))));
  }
  instance.shadow(compiled, plan);
  const ScalarValues none;
  instance.run({&none, 1});
}

// Returns the error at which the shadow run stops.
InternalError difference(const Graph& graph, const std::shared_ptr<Device>& device,
                         const std::function<void(Program&)>& change = {},
                         std::int64_t most_binding_bytes = 0) {
  try {
    run_shadowed(graph, device, change, most_binding_bytes);
  } catch (const InternalError& error) {
    return error;
  }
  ADD_FAILURE() << "the shadow saw no difference";
  return InternalError("none");
}

void add_chain(GraphBuilder& builder, unsigned& tanh_line) {
  const Tensor x = builder.input({4, 8}), w = builder.input({8, 5});
  const Tensor first = matmul(x, w);
  tanh_line = __LINE__ + 1;
  const Tensor second = tanh(first + 1.0);
  builder.output("total", sum(matmul(second, builder.input({5, 3})), {0}));
}

TEST(Shadow, names_the_launch_the_element_both_values_and_the_users_line) {
  GraphBuilder builder;
  unsigned line = 0;
  add_chain(builder, line);
  const auto device = std::make_shared<WrongDevice>(ops::tanh, ops::sigmoid);
  const InternalError error = difference(builder.graph(), device);
  EXPECT_THAT(error.message(), HasSubstr("shadow: launch 0 (matmul_add_tanh) on cpu"));
  EXPECT_THAT(error.message(), HasSubstr("stores a wrong tanh f32[4,5]: element 0 [0,0] is "));
  EXPECT_THAT(error.message(), HasSubstr("expected "));
  EXPECT_THAT(error.message(), HasSubstr("the launch is matmul f32[4,5], add f32[4,5], tanh"));
  EXPECT_THAT(error.location().file, EndsWith("shadow_test.cpp"));
  EXPECT_EQ(error.location().line, line);
}

TEST(Shadow, finds_a_value_overwritten_before_its_last_use) {
  GraphBuilder builder;
  const Tensor a = matmul(builder.input({4, 4}), builder.input({4, 4}));
  const Tensor b = matmul(builder.input({4, 4}), builder.input({4, 4}));
  builder.output("product", matmul(a, b));
  const InternalError error =
      difference(builder.graph(), device_at(Where::kCpu), [](Program& program) {
        ASSERT_EQ(program.launches.size(), 3U);
        const Launch& first = program.launches[0];
        Launch& second = program.launches[1];  // also overwrites the result of the first
        Store again = second.stores.at(0);
        again.binding = static_cast<int>(second.bindings.size());
        second.bindings.push_back(
            first.bindings[static_cast<std::size_t>(first.stores.at(0).binding)]);
        second.stores.push_back(again);
      });
  EXPECT_THAT(error.message(), HasSubstr("launch 2 (matmul) on cpu reads matmul f32[4,4] from"));
  EXPECT_THAT(error.message(), HasSubstr(", which another launch has overwritten"));
  EXPECT_THAT(error.location().file, EndsWith("shadow_test.cpp"));
}

TEST(Shadow, keeps_no_copies_of_literals) {
  GraphBuilder builder;
  builder.output("y", exp(builder.input({3})) * constant(std::vector<float>{1, 2, 3}, {3}));
  const auto device = std::make_shared<RecordingDevice>(make_cpu_device({.threads = 1}));
  run_on_device(builder.graph(), fill_leaves(builder.graph(), {}, 1), device,
                {.skip = {"fuse"}, .shadow = true});
  std::vector<std::size_t> words;
  for (const Program& program : device->programs) {
    words.push_back(0);
    for (const BufferDecl& buffer : program.buffers) words.back() += buffer.data.size();
  }
  EXPECT_EQ(words, (std::vector<std::size_t>{3, 0, 0})) << "the program, and its launches alone";
}

class ShadowOn : public ::testing::TestWithParam<Where> {};

TEST_P(ShadowOn, accepts_random_graphs) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const RandomGraph random = random_graph(seed);
    const LeafWords leaves = fill_leaves(random.graph, {}, static_cast<std::uint32_t>(seed));
    EXPECT_NO_THROW(run_on_device(random.graph, leaves, device_at(GetParam()), {.shadow = true}))
        << "seed " << seed << "\n"
        << print(random.graph);
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, ShadowOn, ::testing::Values(Where::kCpu));
INSTANTIATE_TEST_SUITE_P(webgpu, ShadowOn, ::testing::Values(Where::kWebGpu));

// A graph for a device with bindings of at most 1 KiB: each launch computes only a part of the
// rows.
Graph cut_graph() {
  GraphBuilder builder;
  const Tensor x = builder.input({64, 16}), w = builder.input({16, 8});
  const Tensor product = tanh(matmul(x, w));
  const Tensor normal = softmax(x, 1);
  builder.output("product", matmul(product, builder.input({8, 16})) + normal);
  builder.output("rows", max(normal, 1));
  return builder.graph();
}

TEST(Shadow, accepts_launches_that_were_cut_in_parts_on_webgpu) {
  std::size_t parts = 0, planned = 0;
  const auto count = [&](const Program& program) {
    for (const Launch& launch : program.launches) {
      ++parts;
      planned = std::max(planned, static_cast<std::size_t>(launch.planned) + 1);
    }
  };
  run_shadowed(cut_graph(), device_at(Where::kWebGpu), count, 1024);
  EXPECT_GE(parts, planned * 4);
}

TEST(Shadow, finds_the_wrong_element_in_a_later_part_of_a_launch_on_webgpu) {
  const InternalError error = difference(
      cut_graph(), device_at(Where::kWebGpu),
      [](Program& program) {
        for (Launch& launch : program.launches) {
          if (launch.first_row < 32) continue;
          Program one;
          one.launches = {launch};
          corrupt(one, ops::tanh, ops::sigmoid);
          launch = one.launches[0];
        }
      },
      1024);
  EXPECT_THAT(error.message(), HasSubstr("stores a wrong tanh f32[64,8]: element 256 [32,0] is "));
}

TEST(Shadow, is_enabled_by_the_environment) {
  GraphBuilder builder;
  unsigned line = 0;
  add_chain(builder, line);
  const LeafWords leaves = fill_leaves(builder.graph(), {}, 1);
  const auto device = std::make_shared<WrongDevice>(ops::tanh, ops::sigmoid);
  EXPECT_NO_THROW(run_on_device(builder.graph(), leaves, device));
  const ScopedEnv shadow("TENSORGRAD_SHADOW", "1");
  EXPECT_THROW(run_on_device(builder.graph(), leaves, device), InternalError);
}

struct WatchedNet {
  nn::Linear first{3, 8}, second{8, 2};
  TG_MODULE(first, second)
  Tensor operator()(Tensor x) const { return second(gelu(first(dropout(x, 0.2)))); }
};

std::vector<float> losses_of_three_steps() {
  auto loss = [](const WatchedNet& net, const Inputs& in) { return mse(net(in["x"]), in["y"]); };
  auto trainer = compile(WatchedNet{}, loss,
                         {.dataset = {{"x", {20, 3}}, {"y", {20, 2}}},
                          .batch = 4,
                          .optimizer = optim::AdamW{.lr = 1e-2},
                          .clip_grad_norm = 0.5,
                          .device = {.kind = "cpu", .threads = 1}});
  Draw draw(3);
  for (const auto& [name, count] : {std::pair("x", 60), std::pair("y", 40)}) {
    const Values values = draw.values(f32, count, -1, 1);
    trainer.upload_data(name, std::vector<float>(values.begin(), values.end()));
  }
  return trainer.run(3);
}

struct Policy {
  nn::Linear in{27, 64}, middle{64, 64}, out{64, 9};
  TG_MODULE(in, middle, out)
  Tensor operator()(Tensor x) const { return out(tanh(middle(tanh(in(x))))); }
};

// REINFORCE with a policy that is nearly sure of its moves: probabilities, gradients and the
// second moments of Adam are subnormal, and a device may flush them to zero.
void expect_underflow_is_accepted(const std::string& kind) {
  constexpr std::int64_t kMoves = 24;
  auto loss = [](const Policy& policy, const Inputs& in) {
    const Tensor logits = policy(in["board"]) * 400.0;
    capture("least", min(softmax(logits)));
    const Tensor chosen = sum(log_softmax(logits) * one_hot(in["move"], 9), -1);
    return -sum(chosen * in["advantage"]) / static_cast<double>(kMoves);
  };
  const ScopedEnv shadow("TENSORGRAD_SHADOW", "1");
  auto trainer = compile(
      Policy{}, loss,
      {.inputs = {{"board", {kMoves, 27}}, {"move", {kMoves}, i32}, {"advantage", {kMoves}}},
       .optimizer = optim::Adam{.lr = 5e-3},
       .seed = 1,
       .device = {.kind = kind, .threads = 1, .allow_software = true}});
  Draw draw(7);
  float least = 1;
  for (int step = 0; step < 12; ++step) {
    std::vector<float> board, advantage;
    std::vector<std::int32_t> move;
    for (std::int64_t i = 0; i < kMoves; ++i) {
      for (int k = 0; k < 27; ++k) board.push_back(draw.chance(0.3) ? 1.0F : 0.0F);
      move.push_back(static_cast<std::int32_t>(draw.whole(0, 8)));
      // Products of these and of probabilities are subnormal, and so are their squares.
      const double size = std::exp2(draw.real(-70, 0));
      advantage.push_back(static_cast<float>(draw.chance(0.5) ? size : -size));
    }
    const StepResult result = trainer.step(
        {{"board", board}, {"move", move}, {"advantage", advantage}}, {.captures = {"least"}});
    EXPECT_TRUE(std::isfinite(result.loss));
    least = std::min(least, result.captures.at("least").floats().at(0));
  }
  EXPECT_LT(least, 1e-37F);
}
TEST(Shadow, accepts_training_with_underflow_on_cpu) { expect_underflow_is_accepted("cpu"); }
TEST(Shadow, accepts_training_with_underflow_on_webgpu) { expect_underflow_is_accepted("webgpu"); }

TEST(Shadow, does_not_change_training) {
  const std::vector<float> plain = losses_of_three_steps();
  const ScopedEnv shadow("TENSORGRAD_SHADOW", "1");
  EXPECT_EQ(losses_of_three_steps(), plain);
}

}  // namespace
}  // namespace tensorgrad::testing
