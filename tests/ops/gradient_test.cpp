// SPDX-License-Identifier: MIT
// Gradients: against central differences in double, with the op embedded in a graph; and the
// compiled gradient against the interpreter's.
#include <algorithm>
#include <cmath>

#include "backend/reference/interpreter.h"
#include "op_cases.h"
#include "slopes.h"
#include "support/sanitized.h"

namespace tensorgrad::testing {
namespace {

std::vector<OpCase> differentiable_cases() {
  std::vector<OpCase> cases;
  for (const OpCase& each : all_cases()) {
    if (each.differentiable) cases.push_back(each);
  }
  return cases;
}

class Gradient : public ::testing::TestWithParam<OpCase> {};

TEST_P(Gradient, matches_differences_on_cpu) {
  GraphBuilder builder(11);
  const Embedded made = embed(builder, GetParam());
  builder.output("loss", made.loss);
  const Graph forward = builder.graph();
  report_covered(made.covered);
  const std::vector<Tensor> grads = grad(made.loss, made.raw);
  for (std::size_t i = 0; i < grads.size(); ++i) builder.output("g" + std::to_string(i), grads[i]);
  const ValueMap exact = interpret_graph(builder.graph(), builder.leaves);
  const Slopes slopes(forward, builder.leaves, made.raw, kSanitized ? 4 : 40);
  EXPECT_EQ(slopes.disagreement(exact, 1e-6), "");
  expect_close(builder.graph(), run_graph(builder.graph(), builder.leaves, Where::kCpu), exact,
               1e-4, "on the cpu");
}

INSTANTIATE_TEST_SUITE_P(Op, Gradient, ::testing::ValuesIn(differentiable_cases()), name_of);

void check_on_webgpu(const std::vector<OpCase>& cases) {
  GraphBuilder builder(11);
  std::set<std::string> covered;
  for (const OpCase& each : cases) {
    if (!each.differentiable) continue;
    const Embedded made = embed(builder, each);
    covered.insert(made.covered.begin(), made.covered.end());
    const std::vector<Tensor> grads = grad(made.loss, made.raw);
    for (std::size_t i = 0; i < grads.size(); ++i)
      builder.output(each.name + "_d" + std::to_string(i), grads[i]);
  }
  builder.check(Where::kWebGpu, 1e-4);
  report_covered(covered);
}

TEST(GradientOnDevice, of_views_on_webgpu) { check_on_webgpu(view_cases()); }
TEST(GradientOnDevice, of_reductions_on_webgpu) { check_on_webgpu(reduce_cases()); }
TEST(GradientOnDevice, of_products_on_webgpu) { check_on_webgpu(matmul_cases()); }
TEST(GradientOnDevice, of_indexed_on_webgpu) { check_on_webgpu(index_cases()); }
TEST(GradientOnDevice, of_convolutions_on_webgpu) { check_on_webgpu(conv_cases()); }
TEST(GradientOnDevice, of_pools_on_webgpu) { check_on_webgpu(pool_cases()); }
TEST(GradientOnDevice, of_scans_on_webgpu) { check_on_webgpu(scan_cases()); }
TEST(GradientOnDevice, of_composites_on_webgpu) { check_on_webgpu(composite_cases()); }
TEST(GradientOnDevice, of_functions_on_webgpu) { check_on_webgpu(function_cases()); }
TEST(GradientOnDevice, of_arranging_on_webgpu) { check_on_webgpu(arranging_cases()); }
TEST(GradientOnDevice, of_attention_on_webgpu) { check_on_webgpu(attention_cases()); }
TEST(GradientOnDevice, of_state_spaces_on_webgpu) { check_on_webgpu(state_space_cases()); }
TEST(GradientOnDevice, of_random_on_webgpu) { check_on_webgpu(random_cases()); }
TEST(GradientOnDevice, of_pointwise_on_webgpu) {
  std::vector<OpCase> plain = pointwise_cases();
  std::erase_if(plain, [](const OpCase& each) { return each.name.ends_with("_scalar"); });
  check_on_webgpu(plain);
}

TEST(Gradient, at_corners_matches_pytorch) {
  for (const Corner& corner : corners()) {
    GraphBuilder builder;
    const Embedded made = embed(builder, corner);
    const std::vector<Tensor> grads = grad(made.loss, made.raw);
    for (std::size_t i = 0; i < grads.size(); ++i)
      builder.output("g" + std::to_string(i), grads[i]);
    const ValueMap exact = interpret_graph(builder.graph(), builder.leaves);
    EXPECT_EQ(disagreement(corner, exact), "") << corner.name;
    expect_close(builder.graph(), run_graph(builder.graph(), builder.leaves, Where::kCpu), exact,
                 1e-6, corner.name + " on the cpu");
    EXPECT_EQ(second_disagreement(corner, builder, made, grads), "") << corner.name;
  }
}

class SecondGradient : public ::testing::TestWithParam<OpCase> {};

TEST_P(SecondGradient, matches_differences_on_cpu) {
  GraphBuilder builder(13);
  const Embedded made = embed(builder, GetParam());
  report_covered(made.covered);
  const Tensor loss = loss_of_gradients(builder, made);
  if (loss.trace() == nullptr) return;  // no operand is f32
  builder.output("loss", loss);
  const Graph forward = builder.graph();
  const std::vector<Tensor> seconds = grad(loss, made.raw);
  for (std::size_t i = 0; i < seconds.size(); ++i)
    builder.output("g" + std::to_string(i), seconds[i]);
  const ValueMap exact = interpret_graph(builder.graph(), builder.leaves);
  const Slopes slopes(forward, builder.leaves, made.raw, kSanitized ? 2 : 10);
  EXPECT_EQ(slopes.disagreement(exact, 1e-5), "");
  expect_close(builder.graph(), run_graph(builder.graph(), builder.leaves, Where::kCpu), exact,
               2e-4, "on the cpu");
}

INSTANTIATE_TEST_SUITE_P(Op, SecondGradient, ::testing::ValuesIn(differentiable_cases()), name_of);

void check_seconds_on_webgpu(const std::vector<OpCase>& cases) {
  GraphBuilder builder(13);
  for (const OpCase& each : cases) {
    if (!each.differentiable) continue;
    const Embedded made = embed(builder, each);
    const Tensor loss = loss_of_gradients(builder, made);
    if (loss.trace() == nullptr) continue;  // no operand is f32
    const std::vector<Tensor> seconds = grad(loss, made.raw);
    for (std::size_t i = 0; i < seconds.size(); ++i)
      builder.output(each.name + "_dd" + std::to_string(i), seconds[i]);
  }
  builder.check(Where::kWebGpu, 2e-4);
}

// Drivers that compile the kernels of a family within a minute and a few gigabytes.
enum class Drivers { kAll, kNotLavapipe, kOfRealGpus };

struct Family {
  const char* name;
  std::vector<OpCase> (*cases)();
  Drivers drivers = Drivers::kNotLavapipe;
};

class SecondGradientOnDevice : public ::testing::TestWithParam<Family> {};

TEST_P(SecondGradientOnDevice, of_a_family_on_webgpu) {
  if (kSanitized) GTEST_SKIP() << "a minute of compiling kernels; tried in the Release build";
  const DeviceInfo& device = device_at(Where::kWebGpu)->info();
  const bool lavapipe = device.name.find("llvmpipe") != std::string::npos;
  const Drivers drivers = GetParam().drivers;
  if ((lavapipe && drivers != Drivers::kAll) ||
      (device.software && drivers == Drivers::kOfRealGpus))
    GTEST_SKIP() << device.name << " compiles their kernels for minutes";
  check_seconds_on_webgpu(GetParam().cases());
}

INSTANTIATE_TEST_SUITE_P(
    Op, SecondGradientOnDevice,
    ::testing::Values(Family{"view", view_cases, Drivers::kAll},
                      Family{"index", index_cases, Drivers::kAll},
                      Family{"composite", composite_cases, Drivers::kAll},
                      Family{"reduce", reduce_cases}, Family{"matmul", matmul_cases},
                      Family{"conv", conv_cases}, Family{"pool", pool_cases},
                      Family{"scan", scan_cases}, Family{"function", function_cases},
                      Family{"arranging", arranging_cases}, Family{"attention", attention_cases},
                      Family{"pointwise", pointwise_cases, Drivers::kOfRealGpus},
                      Family{"state_space", state_space_forms}),
    [](const auto& family) { return std::string(family.param.name); });

TEST(Gradient, of_a_gradient_matches_differences) {
  GraphBuilder s;
  const Tensor x = s.input({5}, 0.2, 2);
  const Tensor loss = sum(exp(sin(x)) * log(x) + pow(x, 2.5));
  const Tensor first = grad(loss, {x})[0];
  s.output("loss", sum(square(first)));
  const Graph forward = s.graph();
  s.output("second", grad(sum(square(first)), {x})[0]);
  const Values given = interpret_graph(s.graph(), s.leaves).at("second");
  for (std::size_t i = 0; i < given.size(); ++i) {
    EXPECT_NEAR(given[i], difference(forward, s.leaves, "in0", i), 1e-5 * (1 + std::abs(given[i])));
  }
}

TEST(Gradient, stops_at_detach) {
  GraphBuilder s;
  const Tensor x = s.input({3}, f32, {1, 2, 3});
  s.output("d", grad(sum(x * detach(square(x))), {x})[0]);
  EXPECT_EQ(run_graph(s.graph(), s.leaves, Where::kCpu).at("d"), Values({1, 4, 9}));
}

TEST(Gradient, of_unused_values_is_zero) {
  GraphBuilder s;
  const Tensor x = s.input({3}), unused = s.input({2, 2});
  s.output("d", grad(sum(x * detach(x)), {x, unused})[1]);
  EXPECT_EQ(run_graph(s.graph(), s.leaves, Where::kCpu).at("d"), Values({0, 0, 0, 0}));
}

}  // namespace
}  // namespace tensorgrad::testing
