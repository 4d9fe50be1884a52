// SPDX-License-Identifier: MIT
// checkpoint() of many kinds of regions. Training with and without it yields the same bits if the
// same kernels compute both.
#include <cmath>

#include "support/graph_builder.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kRows = 64, kWidth = 16;

struct Stack {
  std::vector<nn::Linear> layers;
  std::vector<nn::BatchNorm> norms;
  TG_MODULE(layers, norms)

  Stack() {
    for (int i = 0; i < 6; ++i) {
      layers.emplace_back(kWidth, kWidth);
      norms.emplace_back(kWidth);
    }
  }
};

struct Region {
  const char* name;
  Tensor (*of)(const Stack& net, std::size_t layer, const Tensor& x);
  bool penalty = false;  // on the gradient with respect to x, i.e. a gradient of a gradient
};

Tensor two_layers(const Stack& net, std::size_t i, const Tensor& x) {
  return tanh(net.layers[i + 1](gelu(net.layers[i](x))));
}

const Region kRegions[] = {
    {"layers",
     [](const Stack& net, std::size_t i, const Tensor& x) { return x + two_layers(net, i, x); }},
    {"dropout", [](const Stack& net, std::size_t i,
                   const Tensor& x) { return x + dropout(two_layers(net, i, x), 0.2); }},
    {"noise", [](const Stack& net, std::size_t i,
                 const Tensor& x) { return x + two_layers(net, i, x) * randn({kRows, kWidth}); }},
    {"batch_norm", [](const Stack& net, std::size_t i,
                      const Tensor& x) { return x + net.norms[i](two_layers(net, i, x)); }},
    {"nested",
     [](const Stack& net, std::size_t i, const Tensor& x) {
       const auto inner = [&](const std::vector<Tensor>& in) { return gelu(net.layers[i](in[0])); };
       return x + tanh(net.layers[i + 1](checkpoint(inner, {x})));
     }},
    {"attention",
     [](const Stack& net, std::size_t i, const Tensor& x) {
       const Tensor q = reshape(net.layers[i](x), {2, kRows / 2, kWidth});
       const Tensor mixed = scaled_dot_product_attention(q, q, q, {.causal = true, .dropout = 0.1});
       return x + reshape(mixed, {kRows, kWidth});
     }},
    {"norm_and_softmax", [](const Stack& net, std::size_t i,
                            const Tensor& x) { return x + softmax(layer_norm(net.layers[i](x))); }},
    {"sorted", [](const Stack& net, std::size_t i,
                  const Tensor& x) { return x + sort(net.layers[i](x), 1).values; }},
    {"captured",
     [](const Stack& net, std::size_t i, const Tensor& x) {
       return x + capture("c" + std::to_string(i), tanh(net.layers[i](x)));
     }},
    {"recurrence",
     [](const Stack& net, std::size_t i, const Tensor& x) {
       return x + linear_recurrence(sigmoid(net.layers[i](x)), x, 0) * 0.1;
     }},
    {"detached",
     [](const Stack& net, std::size_t i, const Tensor& x) {
       return x + detach(net.layers[i](x)) * tanh(net.layers[i + 1](x));
     }},
    {"gradient",
     [](const Stack& net, std::size_t i, const Tensor& x) {
       return x - 0.1 * grad(sum(tanh(net.layers[i](x))), {x})[0];
     }},
    {"layers_with_penalty",
     [](const Stack& net, std::size_t i, const Tensor& x) { return x + two_layers(net, i, x); },
     true},
    {"dropout_with_penalty",
     [](const Stack& net, std::size_t i, const Tensor& x) {
       return x + dropout(tanh(net.layers[i + 1](softplus(net.layers[i](x)))), 0.2);
     },
     true},
};

Trainer<Stack> trainer_of(const Region& region, bool forget, const std::string& device) {
  return compile(Stack{},
                 [&region, forget](const Stack& net, const Inputs& in) {
                   const Tensor given = in["x"];
                   Tensor x = given;
                   for (std::size_t i = 0; i < net.layers.size(); i += 2) {
                     const auto block = [&](const std::vector<Tensor>& read) {
                       return region.of(net, i, read[0]);
                     };
                     x = forget ? checkpoint(block, {x}) : block({x});
                   }
                   const Tensor loss = mean(square(x));
                   if (!region.penalty) return loss;
                   return loss + mean(square(grad(loss, {given})[0])) * 1e4;
                 },
                 {.inputs = {{"x", {kRows, kWidth}}},
                  .optimizer = optim::Adam{.lr = 1e-2},
                  .seed = 3,
                  .device = {.kind = device, .allow_software = true}});
}

void compare(const Region& region, const std::string& device, bool exact) {
  auto kept = trainer_of(region, false, device), forgotten = trainer_of(region, true, device);
  std::vector<float> x(kRows * kWidth);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.3F * static_cast<float>(i));
  for (int step = 0; step < 4; ++step) {
    const float want = kept.step({{"x", x}}).loss, got = forgotten.step({{"x", x}}).loss;
    EXPECT_NEAR(got, want, exact ? 0 : 1e-5 * std::abs(want)) << "step " << step;
  }
  const auto want = kept.download_params(), got = forgotten.download_params();
  const auto slopes = kept.download_grads(), again = forgotten.download_grads();
  for (const auto& [name, tensor] : want) {
    if (exact) {
      EXPECT_EQ(got.at(name).bytes, tensor.bytes) << name;
      EXPECT_EQ(again.at(name).bytes, slopes.at(name).bytes) << "gradient of " << name;
      continue;
    }
    const std::vector<float> a = tensor.floats(), b = got.at(name).floats();
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-3) << name;
  }
}

void check(const Region& region, const std::string& device) {
  if (device == "cpu") return compare(region, device, true);
  // A fused sequence sums a product in another order than a separate launch, and so does a
  // product's epilogue that reduces rows. A recomputed region is fused differently.
  compare(region, device, false);
  // WGSL lets a driver contract a multiplication and an addition in one kernel but not in another.
  // SwiftShader does not contract, so its results must match to the bit.
  const ScopedEnv env("TENSORGRAD_SKIP", "fused_sequences,row_epilogue");
  compare(region, device,
          device_at(Where::kWebGpu)->info().name.find("SwiftShader") != std::string::npos);
}

class Regions : public ::testing::TestWithParam<Region> {};

TEST_P(Regions, change_no_bit_on_cpu) { check(GetParam(), "cpu"); }
TEST_P(Regions, change_no_bit_on_webgpu) { check(GetParam(), "webgpu"); }

INSTANTIATE_TEST_SUITE_P(Checkpoint, Regions, ::testing::ValuesIn(kRegions),
                         [](const auto& region) { return std::string(region.param.name); });

}  // namespace
}  // namespace tensorgrad::testing
