// SPDX-License-Identifier: MIT
// Compares two models with PyTorch (make_fixtures.py): losses of ten steps, all gradients of the
// first, and all parameters after the last.
#include <gtest/gtest.h>

#include "golden/fixture.h"
#include "support/models.h"

namespace tensorgrad::testing {
namespace {

template <class Model, class Next>
void train(Trainer<Model>& trainer, const Fixture& fixture, const Tolerances& tolerances,
           Next next) {
  trainer.upload_params(fixture.parameters());
  const std::vector<float> losses = fixture.values<float>("losses");
  ASSERT_EQ(losses.size(), 10U);
  for (std::size_t step = 0; step < losses.size(); ++step) {
    EXPECT_NEAR(next(static_cast<std::int64_t>(step)), losses[step], tolerances.loss * losses[step])
        << step;
    if (step == 0) expect_tensors(fixture, "grad/", trainer.download_grads(), tolerances.gradient);
  }
  expect_tensors(fixture, "final/", trainer.download_params(), tolerances.parameter);
}

DeviceOptions device(const std::string& kind) { return {.kind = kind, .allow_software = true}; }

void train_mlp(const std::string& kind, const Tolerances& tolerances) {
  const Fixture fixture("mlp.safetensors");
  CompileOptions options{.inputs = mlp_inputs(),
                         .optimizer = optim::AdamW{.lr = 3e-3, .weight_decay = 0.05},
                         .clip_grad_norm = 0.5,
                         .device = device(kind)};
  auto trainer = compile(Mlp{}, mlp_loss, options);
  train(trainer, fixture, tolerances, [&](std::int64_t step) {
    const auto x = fixture.batch<float>("x", step);
    const auto t = fixture.batch<std::int32_t>("t", step);
    return trainer.step({{"x", x}, {"t", t}}).loss;
  });
}

TEST(Golden, mlp_with_adamw_and_clipping_on_cpu) { train_mlp("cpu", kOnCpu); }
TEST(Golden, mlp_with_adamw_and_clipping_on_webgpu) { train_mlp("webgpu", kOnWebGpu); }

void train_language_model(const std::string& kind, const Tolerances& tolerances) {
  const Fixture fixture("lm.safetensors");
  CompileOptions options{.inputs = language_model_inputs(),
                         .optimizer = optim::Adam{.lr = 1e-2},
                         .device = device(kind)};
  auto trainer = compile(LanguageModel{}, language_model_loss, options);
  train(trainer, fixture, tolerances, [&](std::int64_t step) {
    const auto x = fixture.batch<std::int32_t>("x", step),
               t = fixture.batch<std::int32_t>("t", step);
    return trainer.step({{"x", x}, {"t", t}}).loss;
  });
}

TEST(Golden, language_model_with_adam_on_cpu) { train_language_model("cpu", kOnCpu); }
TEST(Golden, language_model_with_adam_on_webgpu) { train_language_model("webgpu", kOnWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
