// SPDX-License-Identifier: MIT
// Products of few results and long sums: cut for GPUs, and the same as on the CPU.
#include <algorithm>
#include <cmath>

#include "support/sketch.h"
#include "tensorgrad/tensorgrad.h"

#include <gtest/gtest.h>

namespace tensorgrad::testing {
namespace {

struct Wide {
  nn::Linear layer{72, 136};
  TG_MODULE(layer)
};

constexpr std::int64_t kRows = 65536;  // 72 * 136 * 65536 > 2^29

Trainer<Wide> trainer_on(const char* kind) {
  return compile(Wide{},
                 [](const Wide& net, const Inputs& in) {
                   return mean(square(net.layer(in["x"]))) * 100.0 + mean(net.layer(in["x"]));
                 },
                 {.inputs = {{"x", {kRows, 72}}},
                  .optimizer = optim::SGD{.lr = 0.1},
                  .device = {.kind = kind, .allow_software = true}});
}

TEST(SplitDepth, weight_gradients_over_many_rows_are_those_of_cpu_on_webgpu) {
  std::vector<float> x(kRows * 72);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>((i * 2654435761U >> 8) % 2001) / 1000.0F - 1;
  auto cut = trainer_on("webgpu"), whole = trainer_on("cpu");
  for (auto* trainer : {&cut, &whole}) trainer->step({{"x", x}});
  const auto expected = whole.download_grads();
  for (const auto& [name, gradient] : cut.download_grads()) {
    const std::vector<float> mine = gradient.floats(), theirs = expected.at(name).floats();
    float largest = 0;
    for (const float value : theirs) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < mine.size(); ++i)
      ASSERT_NEAR(mine[i], theirs[i], 1e-5 * largest) << name << " " << i;
  }
}

TEST(SplitDepth, depends_on_the_shape_alone_and_can_be_left_out) {
  const auto launches = [](std::int64_t rows) {
    const auto trainer = compile(
        Wide{}, [](const Wide& net, const Inputs& in) { return mean(square(net.layer(in["x"]))); },
        {.inputs = {{"x", {rows, 72}}},
         .optimizer = optim::SGD{.lr = 0.1},
         .device = {.kind = "null"}});
    return trainer.report().launches;
  };
  EXPECT_GT(launches(kRows), launches(4096));
  EXPECT_GT(launches(kRows), launches(65537));  // nothing divides it
  const auto cut = launches(kRows), whole = launches(65537);
  const ScopedEnv env("TENSORGRAD_SKIP", "split_depth");
  EXPECT_GT(cut, launches(kRows));
  EXPECT_EQ(whole, launches(kRows));
}

// Eighths of whole numbers add up without rounding.
Tensor eighths(Sketch& s, const Shape& shape, DType dtype = f32) {
  Values values = s.draw.values(i32, numel(shape), -8, 8);
  for (double& value : values) value /= 8;
  return s.input(shape, dtype, values);
}

std::int64_t batch_of_product(const Graph& graph) {
  for (const Launch& launch : compile_for_test(graph, 8).program.launches) {
    if (launch.kind == LaunchKind::kContraction) return launch.batch;
  }
  return 0;
}

// 144 tiles, of which a GPU that takes 132 at a time has 12 left: four parts of each are computed
// in five rounds of a quarter of the depth.
TEST(SplitDepth, of_rounds_that_would_not_be_full_gives_what_the_whole_gives) {
  constexpr std::int64_t kSide = 1536, kDepth = 1024;
  Sketch s;
  s.output("y", matmul(eighths(s, {kSide, kDepth}), eighths(s, {kDepth, kSide})));
  EXPECT_EQ(batch_of_product(s.graph()), 4);
  const ValueMap cut = run_graph(s.graph(), s.leaves, Where::kCpu);
  const ScopedEnv env("TENSORGRAD_SKIP", "split_depth");
  EXPECT_EQ(batch_of_product(s.graph()), 1);
  EXPECT_EQ(cut, run_graph(s.graph(), s.leaves, Where::kCpu));
}

// So few multiplications stay whole in f32.
TEST(SplitDepth, of_halves_gives_what_the_whole_gives_on_cpu_and_webgpu) {
  constexpr std::int64_t kSide = 128, kDepth = 16384;
  ValueMap cut[2], whole;
  for (const DType dtype : {f16, f32}) {
    Sketch s;
    const Tensor dy = eighths(s, {kDepth, kSide}, dtype), x = eighths(s, {kDepth, kSide}, dtype);
    s.output("dw", matmul(transpose(dy), x));
    EXPECT_EQ(batch_of_product(s.graph()), dtype == f16 ? 16 : 1);
    if (dtype == f32) continue;
    cut[0] = run_graph(s.graph(), s.leaves, Where::kCpu);
    cut[1] = run_graph(s.graph(), s.leaves, Where::kWebGpu);
    const ScopedEnv env("TENSORGRAD_SKIP", "split_depth");
    EXPECT_EQ(batch_of_product(s.graph()), 1);
    whole = run_graph(s.graph(), s.leaves, Where::kCpu);
  }
  EXPECT_EQ(cut[0], whole);
  EXPECT_EQ(cut[1], whole);
}

}  // namespace
}  // namespace tensorgrad::testing
