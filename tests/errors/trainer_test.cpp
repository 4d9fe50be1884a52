// SPDX-License-Identifier: MIT
// Mistakes with calls of a trainer.
#include <cstddef>
#include <utility>
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {

TEST(TrainerErrors, moved_from) {
  auto trainer = compiled(plain_loss);
  const auto other = std::move(trainer);
  EXPECT_EQ(other.steps(), 0);
  // NOLINTNEXTLINE(bugprone-use-after-move): the mistake
  EXPECT_ERROR(trainer.step({}), UserError, "Trainer: used after it was moved from");
}

TEST(TrainerErrors, run_negative_count) {
  auto trainer = compiled(plain_loss, {.dataset = {{"x", {8, 3}}, {"y", {8, 2}}}, .batch = 4});
  EXPECT_ERROR(trainer.run(-5), UserError, "run: expected at least 0 steps, got -5");
}

TEST(TrainerErrors, step_for_negative_time) {
  Example example;
  EXPECT_ERROR(example.trainer.step_for(-1, example.feed), UserError,
               "step_for: expected at least 0 seconds, got -1");
}

TEST(TrainerErrors, step_for_with_detect_nan) {
  auto trainer = compiled(plain_loss, {.detect_nan = true});
  const Example example;
  EXPECT_ERROR(trainer.step_for(1, example.feed), UserError,
               "step_for: not supported with detect_nan; call step()");
}

TEST(TrainerErrors, submit_with_inputs) {
  Example example;
  EXPECT_ERROR(
      example.trainer.submit(1), UserError,
      "submit: the inputs are passed at each step; call step(), or declare them as a dataset");
}

TEST(TrainerErrors, submit_with_detect_nan) {
  auto trainer = compiled(
      plain_loss, {.dataset = {{"x", {8, 3}}, {"y", {8, 2}}}, .batch = 4, .detect_nan = true});
  trainer.upload_data("x", std::vector<float>(24));
  trainer.upload_data("y", std::vector<float>(16));
  EXPECT_ERROR(trainer.submit(1), UserError, "submit: not supported with detect_nan; call step()");
}

TEST(TrainerErrors, snapshot_steps_negative) {
  EXPECT_ERROR(compiled(plain_loss, {.recovery = {.snapshot_steps = -1}}), UserError,
               "RecoveryOptions: expected snapshot_steps of at least 0, got -1");
}

TEST(TrainerErrors, memory_budget_too_small) {
  EXPECT_ERROR(compiled(plain_loss, {.memory_budget = 1000}), UserError,
               MatchesRegex("memory budget: the plan needs [0-9]+ bytes, the budget is 1000; the "
                            "largest tensors are"));
}

TEST(TrainerErrors, loss_nan) {
  const auto loss = [](const Net& net, In in) {
    return mean(net.fc(in["x"])) * 0.0 + mean(FAULTY(log(in["y"])));
  };
  auto trainer = compiled(loss, {.detect_nan = true});
  Example example;
  trainer.step(example.feed);
  example.y[5] = -1;
  EXPECT_ERROR(trainer.step(example.feed), UserError,
               "step 2: the loss is nan; the first op to produce NaN or infinity is log (element 5 "
               "of f32[4,2] is nan)");
}

TEST(TrainerErrors, loss_nan_from_integer_state) {
  const auto loss = [](const Net& net, In in) {
    const Tensor count = state("count", {}, 1, i32);
    set_state("count", count + 1);
    return mean(net.fc(in["x"])) * 0.0 + FAULTY(sqrt(1.0 - cast(count, f32)));
  };
  auto trainer = compiled(loss, {.detect_nan = true});
  const Example example;
  trainer.step(example.feed);
  EXPECT_ERROR(trainer.step(example.feed), UserError,
               "step 2: the loss is nan; the first op to produce NaN or infinity is sqrt (element "
               "0 of f32[] is nan)");
}

TEST(TrainerErrors, upload_params_shape_differs) {
  struct Narrow {
    nn::Linear fc{3, 1};
    TG_MODULE(fc)
  };
  const auto loss = [](const Narrow& net, In in) { return mean(net.fc(in["x"])); };
  auto trainer = compiled_model(Narrow{}, loss);
  const auto params = Example().trainer.download_params();
  EXPECT_ERROR(trainer.upload_params(params), UserError,
               "upload_params: parameter 'fc.weight' is f32[1,3], got f32[2,3]");
}

TEST(TrainerErrors, upload_params_parameter_missing) {
  Example example;
  auto params = example.trainer.download_params();
  params.erase("fc.bias");
  EXPECT_ERROR(example.trainer.upload_params(params), UserError,
               "upload_params: no value for parameter 'fc.bias'");
}

TEST(TrainerErrors, upload_params_name_unknown) {
  Example example;
  auto params = example.trainer.download_params();
  params["fc.extra"] = params["fc.bias"];
  EXPECT_ERROR(example.trainer.upload_params(params), UserError,
               "upload_params: the model has no parameter 'fc.extra'");
}

TEST(TrainerErrors, upload_params_partial_name_unknown) {
  Example example;
  const HostTensor value{f32, {1}, std::vector<std::byte>(4)};
  EXPECT_ERROR(example.trainer.upload_params({{"fc.scale", value}}, {.partial = true}), UserError,
               "upload_params: the model has no parameter 'fc.scale'");
}

TEST(TrainerErrors, set_name_unknown) {
  const auto loss = [](const Net& net, In in) { return plain_loss(net, in) * scalar("beta", 0.5); };
  auto trainer = compiled(loss);
  trainer.set("beta", 0.25);
  EXPECT_ERROR(trainer.set("alpha", 1), UserError,
               "unknown runtime scalar 'alpha'; available: beta");
}

}  // namespace tensorgrad::testing
