// SPDX-License-Identifier: MIT
// Gradients: by central differences in double, with the op in the middle of a graph; and the
// compiled gradient against the interpreter's.
#include <algorithm>
#include <cmath>

#include "backend/reference/interpreter.h"
#include "op_cases.h"
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

// loss = sum of random weights times f(op(g(x))); f and g are smooth, and neither is linear.
struct Embedded {
  std::vector<Tensor> raw;
  Tensor loss;
  std::set<std::string> covered;  // by the op's own part
};

Embedded embed(Sketch& sketch, const OpCase& each) {
  Embedded made;
  std::vector<Tensor> args;
  for (const Argument& arg : each.args) {
    if (arg.dtype != f32) {
      const Values given = arg.values.empty()
                               ? sketch.draw.values(arg.dtype, numel(arg.shape), arg.lo, arg.hi)
                               : arg.values;
      args.push_back(sketch.input(arg.shape, arg.dtype, given));
      continue;
    }
    made.raw.push_back(sketch.input(arg.shape, -1.5, 1.5));
    args.push_back(arg.lo + (arg.hi - arg.lo) * sigmoid(made.raw.back()));
  }
  const ValueId first = sketch.graph().size();
  const Tensor y = each.apply(args);
  note_covered(sketch.graph(), made.covered, first);
  const Tensor weights = sketch.input(y.shape(), 0.5, 2);
  made.loss = sum(log1p(square(y + 0.7)) * weights);
  return made;
}

double loss_at(const Graph& graph, const ValueMap& leaves) {
  return interpret_graph(graph, leaves).at("loss")[0];
}

// d loss / d leaf[i], of fourth order in the step.
double difference(const Graph& graph, ValueMap leaves, const std::string& leaf, std::size_t i) {
  constexpr double kStep = 1e-4;
  double& x = leaves.at(leaf)[i];
  const double at = x;
  const auto f = [&](double move) {
    x = at + move;
    return loss_at(graph, leaves);
  };
  return (8 * (f(kStep) - f(-kStep)) - (f(2 * kStep) - f(-2 * kStep))) / (12 * kStep);
}

std::string name_of(const ::testing::TestParamInfo<OpCase>& info) { return info.param.name; }

class Gradient : public ::testing::TestWithParam<OpCase> {};

TEST_P(Gradient, is_that_of_differences_and_the_same_on_cpu) {
  Sketch sketch(11);
  const Embedded made = embed(sketch, GetParam());
  sketch.output("loss", made.loss);
  const Graph forward = sketch.graph();
  report_covered(made.covered);
  const std::vector<Tensor> grads = grad(made.loss, made.raw);
  for (std::size_t i = 0; i < grads.size(); ++i) sketch.output("g" + std::to_string(i), grads[i]);
  const ValueMap exact = interpret_graph(sketch.graph(), sketch.leaves);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Values& given = exact.at("g" + std::to_string(i));
    const std::string leaf = forward[made.raw[i].id()].attrs.text("name");
    double scale = 1;
    for (const double each : given) scale = std::max(scale, std::abs(each));
    const std::size_t stride = 1 + given.size() / (kSanitized ? 4 : 40);
    for (std::size_t k = 0; k < given.size(); k += stride) {
      EXPECT_NEAR(given[k], difference(forward, sketch.leaves, leaf, k), 1e-6 * scale)
          << "operand " << i << ", element " << k;
    }
  }
  expect_close(sketch.graph(), run_graph(sketch.graph(), sketch.leaves, Where::kCpu), exact, 1e-4,
               "on the cpu");
}

INSTANTIATE_TEST_SUITE_P(Op, Gradient, ::testing::ValuesIn(differentiable_cases()), name_of);

void check_on_webgpu(const std::vector<OpCase>& cases) {
  Sketch sketch(11);
  std::set<std::string> covered;
  for (const OpCase& each : cases) {
    if (!each.differentiable) continue;
    const Embedded made = embed(sketch, each);
    covered.insert(made.covered.begin(), made.covered.end());
    const std::vector<Tensor> grads = grad(made.loss, made.raw);
    for (std::size_t i = 0; i < grads.size(); ++i)
      sketch.output(each.name + "_d" + std::to_string(i), grads[i]);
  }
  sketch.check(Where::kWebGpu, 1e-4);
  report_covered(covered);
}

TEST(GradientOnDevice, of_views_on_webgpu) { check_on_webgpu(view_cases()); }
TEST(GradientOnDevice, of_products_on_webgpu) { check_on_webgpu(matmul_cases()); }
TEST(GradientOnDevice, of_indexed_on_webgpu) { check_on_webgpu(index_cases()); }
TEST(GradientOnDevice, of_convolutions_on_webgpu) { check_on_webgpu(conv_cases()); }
TEST(GradientOnDevice, of_pools_on_webgpu) { check_on_webgpu(pool_cases()); }
TEST(GradientOnDevice, of_scans_on_webgpu) { check_on_webgpu(scan_cases()); }
TEST(GradientOnDevice, of_composites_on_webgpu) { check_on_webgpu(composite_cases()); }
TEST(GradientOnDevice, of_functions_on_webgpu) { check_on_webgpu(function_cases()); }
TEST(GradientOnDevice, of_arranging_on_webgpu) { check_on_webgpu(arranging_cases()); }
TEST(GradientOnDevice, of_attention_on_webgpu) { check_on_webgpu(attention_cases()); }
TEST(GradientOnDevice, of_pointwise_on_webgpu) {
  std::vector<OpCase> plain = pointwise_cases();
  std::erase_if(plain, [](const OpCase& each) { return each.name.ends_with("_scalar"); });
  check_on_webgpu(plain);
}

// The subgradients that PyTorch takes: 0 at the kinks of abs and relu, shares at ties.
TEST(Gradient, at_kinks_is_that_of_pytorch) {
  Sketch s;
  const Tensor x = s.input({4}, f32, {0, 2, 2, -1});
  const Tensor loss =
      sum(relu(x) * 3.0) + sum(abs(x) * 5.0) + max(x) * 7.0 + sum(maximum(x, 2.0) * 11.0);
  s.output("dx", grad(loss, {x})[0]);
  const Values want = {0 + 0 + 0 + 0, 3 + 5 + 3.5 + 5.5, 3 + 5 + 3.5 + 5.5, 0 - 5 + 0 + 0};
  EXPECT_EQ(interpret_graph(s.graph(), s.leaves).at("dx"), want);
  EXPECT_EQ(run_graph(s.graph(), s.leaves, Where::kCpu).at("dx"), want);
}

class SecondGradient : public ::testing::TestWithParam<OpCase> {};

// loss = random weights times the gradients of the first loss.
TEST_P(SecondGradient, is_that_of_differences) {
  Sketch sketch(13);
  const Embedded made = embed(sketch, GetParam());
  report_covered(made.covered);
  Tensor loss;
  for (const Tensor& each : grad(made.loss, made.raw)) {
    const Tensor part = sum(each * sketch.input(each.shape(), 0.5, 2));
    loss = loss.trace() == nullptr ? part : loss + part;
  }
  if (loss.trace() == nullptr) return;  // no operand is f32
  sketch.output("loss", loss);
  const Graph forward = sketch.graph();
  const std::vector<Tensor> seconds = grad(loss, made.raw);
  for (std::size_t i = 0; i < seconds.size(); ++i)
    sketch.output("g" + std::to_string(i), seconds[i]);
  const ValueMap exact = interpret_graph(sketch.graph(), sketch.leaves);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const Values& given = exact.at("g" + std::to_string(i));
    const std::string leaf = forward[made.raw[i].id()].attrs.text("name");
    double scale = 1;
    for (const double each : given) scale = std::max(scale, std::abs(each));
    for (std::size_t k = 0; k < given.size(); k += 1 + given.size() / (kSanitized ? 2 : 10)) {
      EXPECT_NEAR(given[k], difference(forward, sketch.leaves, leaf, k), 1e-5 * scale)
          << "operand " << i << ", element " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Op, SecondGradient, ::testing::ValuesIn(differentiable_cases()), name_of);

TEST(Gradient, of_a_gradient_is_that_of_differences) {
  Sketch s;
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
  Sketch s;
  const Tensor x = s.input({3}, f32, {1, 2, 3});
  s.output("d", grad(sum(x * detach(square(x))), {x})[0]);
  EXPECT_EQ(run_graph(s.graph(), s.leaves, Where::kCpu).at("d"), Values({1, 4, 9}));
}

TEST(Gradient, of_what_the_loss_does_not_need_is_zero) {
  Sketch s;
  const Tensor x = s.input({3}), unused = s.input({2, 2});
  s.output("d", grad(sum(x * detach(x)), {x, unused})[1]);
  EXPECT_EQ(run_graph(s.graph(), s.leaves, Where::kCpu).at("d"), Values({0, 0, 0, 0}));
}

}  // namespace
}  // namespace tensorgrad::testing
