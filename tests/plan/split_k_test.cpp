// SPDX-License-Identifier: MIT
// Split-K: products with few results and long sums are split for GPUs, and return the results of
// the CPU.
#include <algorithm>
#include <cmath>

#include "support/graph_builder.h"
#include "tensorgrad/tensorgrad.h"

#include <gtest/gtest.h>

namespace tensorgrad::testing {
namespace {

struct Wide {
  nn::Linear layer{72, 136};
  TG_MODULE(layer)
};

constexpr std::int64_t kRows = 65500;  // 72 * 136 * 65500 > 2^29

Trainer<Wide> trainer_on(const char* kind) {
  return compile(Wide{},
                 [](const Wide& net, const Inputs& in) {
                   return mean(square(net.layer(in["x"]))) * 100.0 + mean(net.layer(in["x"]));
                 },
                 {.inputs = {{"x", {kRows, 72}}},
                  .optimizer = optim::SGD{.lr = 0.1},
                  .device = {.kind = kind, .allow_software = true}});
}

TEST(SplitK, weight_gradients_over_many_rows_match_cpu_on_webgpu) {
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

TEST(SplitK, depends_only_on_the_shape_and_can_be_disabled) {
  const auto launches = [](std::int64_t rows) {
    const auto trainer = compile(
        Wide{}, [](const Wide& net, const Inputs& in) { return mean(square(net.layer(in["x"]))); },
        {.inputs = {{"x", {rows, 72}}},
         .optimizer = optim::SGD{.lr = 0.1},
         .device = {.kind = "null"}});
    return trainer.report().launches;
  };
  EXPECT_GT(launches(kRows), launches(4096));
  EXPECT_EQ(launches(kRows), launches(65537));  // 65537 is prime
  const auto cut = launches(kRows), whole = launches(4096);
  const ScopedEnv env("TENSORGRAD_SKIP", "split_k");
  EXPECT_GT(cut, launches(kRows));
  EXPECT_EQ(whole, launches(4096));
}

// Multiples of 1/8 are added without rounding.
Tensor eighths(GraphBuilder& s, const Shape& shape, DType dtype = f32) {
  Values values = s.draw.values(i32, numel(shape), -8, 8);
  for (double& value : values) value /= 8;
  return s.input(shape, dtype, values);
}

std::int64_t parts_of_product(const Graph& graph) {
  for (const Launch& launch : compile_for_test(graph, 8).program.launches) {
    if (const auto* p = launch.find<ContractionLaunch>()) return p->parts;
  }
  return 0;
}

// Expects that the product is split into `parts` along k on WebGPU, and that it equals the unsplit
// product on the CPU. Operands are multiples of 1/8.
void expect_parts(const Shape& a, const Shape& b, bool transposed, DType dtype,
                  std::int64_t parts) {
  GraphBuilder s;
  const Tensor left = eighths(s, a, dtype), right = eighths(s, b, dtype);
  s.output("y", matmul(transposed ? transpose(left) : left, right));
  EXPECT_EQ(parts_of_product(s.graph()), parts);
  if (parts == 1) return;
  const ValueMap cut = run_graph(s.graph(), s.leaves, Where::kWebGpu);
  const ScopedEnv env("TENSORGRAD_SKIP", "split_k");
  EXPECT_EQ(parts_of_product(s.graph()), 1);
  EXPECT_EQ(cut, run_graph(s.graph(), s.leaves, Where::kCpu));
}

// The last part is shorter.
TEST(SplitK, of_few_tiles_matches_the_unsplit_product_on_webgpu) {
  expect_parts({5600, 384}, {5600, 256}, true, DType::kF32, 18);
}

// A product of this size is split in f16 but not in f32.
TEST(SplitK, of_f16_matches_the_unsplit_product_on_webgpu) {
  expect_parts({16300, 128}, {16300, 130}, true, DType::kF16, 51);
  expect_parts({16300, 128}, {16300, 130}, true, DType::kF32, 1);
}

}  // namespace
}  // namespace tensorgrad::testing
