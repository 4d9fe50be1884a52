// SPDX-License-Identifier: MIT
// Checkpoints and custom gradients.
#include <algorithm>
#include <cmath>

#include "backend/reference/interpreter.h"
#include "ops/registry.h"
#include "support/graph_builder.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using Tensors = std::vector<Tensor>;

// ---- checkpoint ------------------------------------------------------------------------------

struct Deep {
  std::vector<nn::Linear> layers;
  TG_MODULE(layers)

  Deep() {
    for (int i = 0; i < 8; ++i) layers.emplace_back(32, 32);
  }
  // Applies the layers in blocks of two, optionally checkpointed.
  Tensor operator()(Tensor x, bool forget) const {
    for (std::size_t i = 0; i < layers.size(); i += 2) {
      const auto block = [&](const Tensors& in) {
        const Tensor h = gelu(layers[i](in[0]));
        return in[0] + dropout(tanh(layers[i + 1](h)), 0.1);
      };
      x = forget ? checkpoint(block, {x}) : block({x});
    }
    return x;
  }
};

Trainer<Deep> deep_trainer(bool forget, const std::string& device) {
  CompileOptions options;
  options.inputs = {{"x", {64, 32}}, {"y", {64, 32}}};
  options.optimizer = optim::Adam{.lr = 0.01};
  options.seed = 3;
  options.device = {.kind = device, .allow_software = true};
  return compile(
      Deep{},
      [forget](const Deep& net, const Inputs& in) { return mse(net(in["x"], forget), in["y"]); },
      options);
}

std::vector<float> waves(double rate) {
  std::vector<float> values(64 * 32);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(rate * static_cast<double>(i)));
  return values;
}

TEST(Checkpoint, changes_no_bit_and_lowers_the_peak) {
  const std::vector<float> x = waves(0.37), y = waves(0.11);
  auto kept = deep_trainer(false, "cpu"), forgotten = deep_trainer(true, "cpu");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(kept.step({{"x", x}, {"y", y}}).loss, forgotten.step({{"x", x}, {"y", y}}).loss);
  }
  const auto with = forgotten.download_params(), without = kept.download_params();
  for (const auto& [name, tensor] : with) EXPECT_EQ(tensor.bytes, without.at(name).bytes) << name;
  // Without checkpoints, the activations of eight layers are kept (8 KiB each, before and after
  // gelu or tanh); with checkpoints, those of one block.
  EXPECT_LT(forgotten.report().peak_bytes + 6 * 8192, kept.report().peak_bytes);
}

TEST(Checkpoint, trains_alike_on_webgpu) {
  const std::vector<float> x = waves(0.37), y = waves(0.11);
  auto cpu = deep_trainer(false, "cpu"), gpu = deep_trainer(true, "webgpu");
  for (int i = 0; i < 3; ++i) {
    const float want = cpu.step({{"x", x}, {"y", y}}).loss;
    EXPECT_NEAR(gpu.step({{"x", x}, {"y", y}}).loss, want, 1e-4 * want);
  }
}

TEST(Checkpoint, may_be_nested_and_differentiated_twice) {
  const auto curve = [](bool forget) {
    GraphBuilder s(5);
    const Tensor x = s.input({4, 3}, 0.2, 2), w = s.input({3, 3}, -1, 1);
    const auto inner = [&](const Tensors& in) { return sin(matmul(in[0], w)) * in[0]; };
    const auto outer = [&](const Tensors& in) {
      return exp((forget ? checkpoint(inner, {in[0]}) : inner({in[0]})) * 0.5) + in[0];
    };
    const Tensor y = forget ? checkpoint(outer, {x}) : outer({x});
    const Tensors first = grad(sum(square(y)), {x, w});
    s.output("dx", first[0]);
    s.output("dw", first[1]);
    s.output("ddw", grad(sum(square(first[0])) + sum(first[1]), {w})[0]);
    s.check(Where::kCpu, 1e-4);
    return interpret_graph(s.graph(), s.leaves);
  };
  const ValueMap with = curve(true), without = curve(false);
  EXPECT_EQ(with.at("dx"), without.at("dx"));
  EXPECT_EQ(with.at("dw"), without.at("dw"));
  EXPECT_EQ(with.at("ddw"), without.at("ddw"));
}

TEST(Checkpoint, of_a_function_that_computes_nothing_is_its_input) {
  GraphBuilder s;
  const Tensor x = s.input({3});
  const Tensor y = checkpoint([](const Tensors& in) { return in[0]; }, {x});
  EXPECT_EQ(y.id(), x.id());
}

TEST(Checkpoint, gradients_of_inner_values_are_available) {
  GraphBuilder s;
  const Tensor x = s.input({3}, f32, {1, 2, 3});
  Tensor inside;
  const Tensor y = checkpoint(
      [&](const Tensors& in) {
        inside = square(in[0]);
        return inside * 5.0;
      },
      {x});
  const Tensors gradients = grad(sum(y * x), {inside, x});
  s.output("d_inside", gradients[0]);
  s.output("dx", gradients[1]);
  const ValueMap got = run_graph(s.graph(), s.leaves, Where::kCpu);
  EXPECT_EQ(got.at("d_inside"), Values({5, 10, 15}));
  EXPECT_EQ(got.at("dx"), Values({15, 60, 135}));
}

TEST(Checkpoint, of_a_function_that_ignores_its_input_has_no_gradient) {
  GraphBuilder s;
  const Tensor x = s.input({3}, f32, {1, 2, 3});
  const Tensor y = checkpoint(
      [](const Tensors& in) {
        static_cast<void>(sin(in[0]));
        return ones({3}) * 2.0;
      },
      {x});
  s.output("dx", grad(sum(y) + sum(x), {x})[0]);
  EXPECT_EQ(run_graph(s.graph(), s.leaves, Where::kCpu).at("dx"), Values({1, 1, 1}));
}

// ---- custom_gradient -------------------------------------------------------------------------

void check_straight_through(Where where) {
  GraphBuilder s;
  const Tensor x = s.input({4}, f32, {0.2, 0.7, 1.4, -2.6});
  const Tensor y = custom_gradient(
      {x}, [](const Tensors& in) { return round(in[0]); },
      [](const Tensors&, Tensor, Tensor dy) { return Tensors{dy}; });
  s.output("y", y);
  s.output("dx", grad(sum(square(y)), {x})[0]);
  const ValueMap got = run_graph(s.graph(), s.leaves, where);
  EXPECT_EQ(got.at("y"), Values({0, 1, 1, -3}));
  EXPECT_EQ(got.at("dx"), Values({0, 2, 2, -6}));
}
TEST(CustomGradient, of_straight_through_is_the_identity) { check_straight_through(Where::kCpu); }
TEST(CustomGradient, of_straight_through_is_the_identity_on_webgpu) {
  check_straight_through(Where::kWebGpu);
}

// tanh with a custom gradient that uses the result. Both operands have a gradient.
Tensor scaled_tanh(Tensor x, Tensor scale, bool custom) {
  const auto forward = [](const Tensors& in) { return tanh(in[0]) * in[1]; };
  if (!custom) return forward({x, scale});
  return custom_gradient({x, scale}, forward, [](const Tensors& in, Tensor y, Tensor dy) {
    const Tensor t = y / in[1];
    return Tensors{dy * in[1] * (1 - t * t), dy * t};
  });
}

TEST(CustomGradient, matches_the_derived_one_to_second_order) {
  const auto gradients = [](bool custom) {
    GraphBuilder s(2);
    const Tensor x = s.input({5}, -1, 1), scale = s.input({5}, 0.5, 2);
    const Tensors first = grad(sum(exp(scaled_tanh(x, scale, custom))), {x, scale});
    s.output("dx", first[0]);
    s.output("dscale", first[1]);
    const Tensors second = grad(sum(square(first[0]) + first[1]), {x, scale});
    s.output("ddx", second[0]);
    s.output("ddscale", second[1]);
    s.check(Where::kCpu, 1e-4);
    return interpret_graph(s.graph(), s.leaves);
  };
  const ValueMap custom = gradients(true), own = gradients(false);
  for (const auto& [name, values] : own) {
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(custom.at(name)[i], values[i], 1e-9) << name << " " << i;
  }
}

TEST(CustomGradient, is_used_even_if_wrong) {
  GraphBuilder s;
  const Tensor x = s.input({2}, f32, {1, 2});
  const Tensor y = custom_gradient(
      {x}, [](const Tensors& in) { return square(in[0]); },
      [](const Tensors& in, Tensor, Tensor dy) { return Tensors{dy * in[0] * 100.0}; });
  s.output("dx", grad(sum(y), {x})[0]);
  EXPECT_EQ(run_graph(s.graph(), s.leaves, Where::kCpu).at("dx"), Values({100, 200}));
}

TEST(CustomGradient, adds_no_launches) {
  struct Scale {
    Parameter weight{{4}, init::ones()};
    TG_MODULE(weight)
  };
  const auto launches = [](bool custom) {
    auto trainer =
        compile(Scale{},
                [custom](const Scale& net, const Inputs& in) {
                  return mean(square(scaled_tanh(in["x"] * net.weight, in["x"], custom)));
                },
                {.inputs = {{"x", {4}}}, .optimizer = optim::SGD{}, .device = {.kind = "null"}});
    return trainer.report().launches;
  };
  EXPECT_EQ(launches(true), launches(false));
}

}  // namespace
}  // namespace tensorgrad::testing
