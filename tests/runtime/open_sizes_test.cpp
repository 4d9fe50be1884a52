// SPDX-License-Identifier: MIT
// Functions with inputs of a dynamic size: values, shared states and weights, cached programs,
// threads.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::ElementsAre;

struct MeanNet {
  nn::Linear layer{3, 2};
  TG_MODULE(layer)
};

Tensor mean_of(const MeanNet& net, const Inputs& in) { return mean(net.layer(in["x"]), {0}); }

std::vector<float> counted(std::int64_t rows) {
  std::vector<float> values(static_cast<std::size_t>(3 * rows));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
  return values;
}

FunctionOptions open_options(const char* device, std::int64_t rows = kDynamic) {
  return {.inputs = {{"x", {rows, 3}}}, .device = {.kind = device, .allow_software = true}};
}

void expect_values(const char* device) {
  CompiledFunction open = compile_function(MeanNet{}, mean_of, open_options(device));
  for (const std::int64_t rows : {5, 1, 130, 5}) {
    CompiledFunction whole = compile_function(MeanNet{}, mean_of, open_options(device, rows));
    const std::vector<float> x = counted(rows);
    EXPECT_EQ(open({{"x", x}}).floats(), whole({{"x", x}}).floats()) << rows;
  }
  EXPECT_THAT(open.compiled_sizes(), ElementsAre(1, 5, 130));
}

TEST(DynamicSizes, match_declared_sizes_bit_for_bit_on_cpu) { expect_values("cpu"); }
TEST(DynamicSizes, match_declared_sizes_bit_for_bit_on_webgpu) { expect_values("webgpu"); }

TEST(DynamicSizes, outputs_have_the_size_of_the_call) {
  const auto doubled = [](const MeanNet&, const Inputs& in) { return in["x"] * 2.0; };
  CompiledFunction open = compile_function(MeanNet{}, doubled, open_options("cpu"));
  EXPECT_EQ(open({{"x", counted(4)}}).shape, (Shape{4, 3}));
  EXPECT_EQ(open({{"x", counted(9)}}).shape, (Shape{9, 3}));
}

TEST(DynamicSizes, are_the_same_for_all_inputs_of_a_call) {
  const auto dot = [](const MeanNet&, const Inputs& in) {
    return sum(in["x"] * unsqueeze(in["w"], 1) * in["scale"]);
  };
  FunctionOptions options = open_options("cpu");
  options.inputs = {{"x", {kDynamic, 3}}, {"w", {kDynamic}}, {"scale", {}}};
  CompiledFunction open = compile_function(MeanNet{}, dot, options);
  const std::vector<float> x = {1, 2, 3, 4, 5, 6}, w = {10, 1}, scale = {2};
  EXPECT_EQ(open({{"x", x}, {"w", w}, {"scale", scale}}).floats(), std::vector<float>{150});
}

TEST(DynamicSizes, evict_least_recently_used_except_the_first) {
  FunctionOptions options = open_options("cpu");
  options.dynamic_size = 4;
  options.max_cached_sizes = 2;
  CompiledFunction open = compile_function(MeanNet{}, mean_of, options);
  EXPECT_THAT(open.compiled_sizes(), ElementsAre(4));
  for (const std::int64_t rows : {7, 8, 7, 9}) open({{"x", counted(rows)}});
  EXPECT_THAT(open.compiled_sizes(), ElementsAre(4, 9, 7));
  open({{"x", counted(4)}});
  EXPECT_THAT(open.compiled_sizes(), ElementsAre(4, 9, 7));
}

TEST(DynamicSizes, share_parameters_that_are_uploaded_later_or_trained) {
  CompileOptions spec;
  spec.inputs = {{"x", {6, 3}}};
  spec.optimizer = optim::SGD{.lr = 0.1};
  spec.device = {.kind = "cpu"};
  auto trainer = compile(
      MeanNet{}, [](const MeanNet& net, const Inputs& in) { return mean(net.layer(in["x"])); },
      spec);
  CompiledFunction open = trainer.attach(mean_of, {.inputs = {{"x", {kDynamic, 3}}}});
  const std::vector<float> x = counted(2);
  const std::vector<float> before = open({{"x", x}}).floats();
  trainer.step({{"x", counted(6)}});
  const std::vector<float> after = open({{"x", x}}).floats();
  EXPECT_NE(before, after);
  CompiledFunction fresh = trainer.attach(mean_of, {.inputs = {{"x", {2, 3}}}});
  EXPECT_EQ(fresh({{"x", x}}).floats(), after);
}

// A state continues whatever the size of the call.
TEST(DynamicSizes, share_states) {
  const auto count = [](const MeanNet&, const Inputs& in) {
    const Tensor calls = state("calls", {}, 0.0);
    set_state("calls", calls + 1.0);
    return calls + sum(in["x"]) * 0.0;
  };
  CompiledFunction open = compile_function(MeanNet{}, count, open_options("cpu"));
  for (const std::int64_t rows : {1, 5, 2, 5, 1}) open({{"x", counted(rows)}});
  EXPECT_EQ(open({{"x", counted(3)}}).floats(), std::vector<float>{5});
}

TEST(DynamicSizes, captures_are_of_the_size_of_the_call) {
  const auto captured = [](const MeanNet& net, const Inputs& in) {
    return sum(capture("hidden", net.layer(in["x"])));
  };
  CompiledFunction open = compile_function(MeanNet{}, captured, open_options("cpu"));
  const std::vector<float> x = counted(3), other = counted(2);
  EXPECT_EQ(open.run({{"x", x}}, {.captures = {"hidden"}}).at("hidden").shape, (Shape{3, 2}));
  EXPECT_EQ(open.run({{"x", other}}, {.captures = {"hidden"}}).at("hidden").shape, (Shape{2, 2}));
  EXPECT_THAT(open.captures(), ElementsAre("hidden"));
}

// If two calls bring a new size at the same time, it is compiled once. The original library
// compiles it twice and loses one of the two.
TEST(DynamicSizes, compile_each_size_once_for_several_threads) {
  std::atomic<int> traces = 0;
  const auto counted_traces = [&](const MeanNet& net, const Inputs& in) {
    ++traces;
    return mean_of(net, in);
  };
  CompiledFunction open = compile_function(MeanNet{}, counted_traces, open_options("cpu"));
  const std::vector<float> x = counted(11);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { open({{"x", x}}); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(traces, 2);
}

TEST(DynamicSizes, rejected_call_compiles_nothing) {
  CompiledFunction open = compile_function(MeanNet{}, mean_of, open_options("cpu"));
  const std::vector<std::int32_t> whole(6);
  EXPECT_THROW(open({{"x", whole}}), DtypeError);
  EXPECT_THROW(open({{"x", counted(2)}, {"y", counted(2)}}), UserError);
  EXPECT_THROW(open(), UserError);
  EXPECT_THAT(open.compiled_sizes(), ElementsAre(1));
}

TEST(DynamicSizes, failed_trace_changes_nothing) {
  const auto even = [](const MeanNet&, const Inputs& in) { return reshape(in["x"], {-1, 2, 3}); };
  FunctionOptions options = open_options("cpu");
  options.dynamic_size = 2;
  CompiledFunction open = compile_function(MeanNet{}, even, options);
  EXPECT_THROW(open({{"x", counted(3)}}), ShapeError);
  EXPECT_EQ(open({{"x", counted(4)}}).shape, (Shape{2, 2, 3}));
  EXPECT_THAT(open.compiled_sizes(), ElementsAre(2, 4));
}

}  // namespace
}  // namespace tensorgrad::testing
