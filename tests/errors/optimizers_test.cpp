// SPDX-License-Identifier: MIT
// Mistakes with optimizers and options of the update.
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {

TEST(OptimizerErrors, optimizer_missing) {
  EXPECT_ERROR(compile(Net{}, plain_loss, {.inputs = {{"x", {4, 3}}, {"y", {4, 2}}}}), UserError,
               "compile: an optimizer is required");
}

TEST(OptimizerErrors, option_out_of_range) {
  EXPECT_ERROR(compiled(plain_loss, {.optimizer = optim::Adam{.beta1 = 2}}), UserError,
               "Adam: beta1: expected at least 0 and less than 1, got 2");
  EXPECT_ERROR(compiled(plain_loss, {.optimizer = optim::SGD{.lr = std::nan("")}}), UserError,
               "compile: expected a learning rate of at least 0, got nan");
  EXPECT_ERROR(compiled(plain_loss, {.accumulate = 0}), UserError,
               "compile: accumulate: expected at least one step, got 0");
  EXPECT_ERROR(compiled(plain_loss, {.ema_decay = 1}), UserError,
               "compile: ema_decay: expected at least 0 and less than 1, got 1");
}

TEST(OptimizerErrors, sharded_without_ranks) {
  EXPECT_ERROR(compiled(plain_loss, {.shard_optimizer = true}), UserError,
               "compile: shard_optimizer: expected distributed to be set, got null");
}

TEST(OptimizerErrors, adam_beta_set_to_one) {
  auto trainer = compiled(plain_loss, {.optimizer = optim::AdamW{.beta1 = optim::adjustable(0.9)}});
  EXPECT_ERROR(trainer.set("beta1", 1), UserError,
               "beta1: expected at least 0 and less than 1, got 1");
}

TEST(OptimizerErrors, sgd_nesterov_with_dampening) {
  EXPECT_ERROR(
      compiled(plain_loss,
               {.optimizer = optim::SGD{.momentum = 0.9, .nesterov = true, .dampening = 0.1}}),
      UserError, "SGD: nesterov requires momentum and zero dampening");
}

TEST(OptimizerErrors, sgd_dampening_of_one) {
  EXPECT_ERROR(compiled(plain_loss, {.optimizer = optim::SGD{.momentum = 0.9, .dampening = 1}}),
               UserError, "SGD: dampening: expected at least 0 and less than 1, got 1");
}

// No update would change a parameter.
TEST(OptimizerErrors, adadelta_eps_zero_in_f32) {
  EXPECT_ERROR(compiled(plain_loss, {.optimizer = optim::Adadelta{.eps = 0}}), UserError,
               "Adadelta: eps: expected at least 2^-126, got 0");
  EXPECT_ERROR(compiled(plain_loss, {.optimizer = optim::Adadelta{.eps = 1e-50}}), UserError,
               "Adadelta: eps: expected at least 2^-126, got 1e-50");
}

TEST(OptimizerErrors, muon_of_vector) {
  EXPECT_ERROR(compiled(plain_loss, {.optimizer = optim::Muon{.params = "fc.bias"}}), UserError,
               "Muon: expected parameters with two axes, 'fc.bias' has 1");
}

TEST(OptimizerErrors, set_param_not_called) {
  struct Lazy {
    Schedule lr = 0.1;
    void operator()(optim::Update&) const {}
  };
  EXPECT_ERROR(compiled(plain_loss, {.optimizer = Lazy{}}), UserError,
               "optimizer: set_param() was never called");
}

TEST(OptimizerErrors, set_state_of_unknown_state) {
  struct Hasty {
    Schedule lr = 0.1;
    void operator()(optim::Update& update) const { update.set_state("velocity", update.grad); }
  };
  EXPECT_ERROR(compiled(plain_loss, {.optimizer = Hasty{}}), UserError,
               "optimizer: set_state('velocity') called before state('velocity')");
}

TEST(OptimizerErrors, uploaded_state_unknown) {
  Example example;
  const HostTensor value{f32, {2}, std::vector<std::byte>(8)};
  EXPECT_ERROR(example.trainer.upload_optimizer({{"exp_avg/fc.bias", value}}), UserError,
               "upload_optimizer: unknown state 'exp_avg/fc.bias'");
}

TEST(OptimizerErrors, learning_rate_set_to_infinity) {
  Example example;
  EXPECT_ERROR(example.trainer.set_lr(std::numeric_limits<double>::infinity()), UserError,
               "set_lr: expected a learning rate of at least 0, got inf");
}

TEST(OptimizerErrors, ema_not_kept) {
  const Example example;
  EXPECT_ERROR(example.trainer.download_ema(), UserError, "download_ema: ema_decay is not set");
}

TEST(OptimizerErrors, attached_averages_not_kept) {
  Example example;
  EXPECT_ERROR(
      example.trainer.attach(predict, {.inputs = {{"x", {1, 3}}}, .weights = WeightSource::kEma}),
      UserError, "attach: WeightSource::kEma requires ema_decay");
}

TEST(OptimizerErrors, averages_without_trainer) {
  EXPECT_ERROR(
      compile_function(Net{}, predict, {.inputs = {{"x", {1, 3}}}, .weights = WeightSource::kEma}),
      UserError, "compile_function: only a trainer has averages; use attach()");
}

TEST(GradientOptionErrors, clip_value_not_positive) {
  EXPECT_ERROR(compiled(plain_loss, {.clip_grad_norm = -1}), UserError,
               "clip_grad_norm: expected more than 0, got -1");
  EXPECT_ERROR(compiled(plain_loss, {.clip_grad_value = -1}), UserError,
               "clip_grad_value: expected more than 0, got -1");
}

TEST(GradientOptionErrors, clip_grad_norm_set_to_zero) {
  auto trainer = compiled(plain_loss, {.clip_grad_norm = 1});
  EXPECT_ERROR(trainer.set("clip_grad_norm", 0), UserError,
               "clip_grad_norm: expected more than 0, got 0");
}

TEST(GradientOptionErrors, normalize_grads_matches_nothing) {
  EXPECT_ERROR(compiled(plain_loss, {.normalize_grads = "w"}), UserError,
               "normalize_grads: no parameter matches; available: fc.weight, fc.bias");
}

TEST(GradientOptionErrors, grad_norm_not_computed) {
  const Example example;
  EXPECT_ERROR(example.trainer.grad_norm(), UserError,
               "grad_norm: not computed: enable clip_grad_norm, skip_nonfinite or loss scaling");
}

TEST(GroupErrors, pattern_matches_nothing) {
  EXPECT_ERROR(compiled(plain_loss, {.groups = {{.params = "*.biass"}}}), UserError,
               "group '*.biass': no parameter matches; available: fc.weight, fc.bias");
}

TEST(GroupErrors, lr_factor_negative) {
  EXPECT_ERROR(compiled(plain_loss, {.groups = {{.params = "*", .lr_factor = -1}}}), UserError,
               "lr_factor.*: expected a number of at least 0, got -1");
}

TEST(GroupErrors, name_repeated) {
  EXPECT_ERROR(compiled(plain_loss, {.groups = {{.params = "*"}, {.params = "*"}}}), UserError,
               "groups: two groups are named '*'");
}

TEST(GroupErrors, every_parameter_frozen) {
  EXPECT_ERROR(compiled(plain_loss, {.groups = {{.params = "*", .freeze = true}}}), UserError,
               "compile: every parameter is frozen");
}

TEST(LossScaleErrors, option_out_of_range) {
  EXPECT_ERROR(compiled(plain_loss, {.loss_scale = LossScale{.init_scale = 0}}), UserError,
               "loss_scale: init_scale: expected a number between 2^-100 and 2^100, got 0");
  EXPECT_ERROR(compiled(plain_loss, {.loss_scale = LossScale{.growth_factor = 1}}), UserError,
               "loss_scale: growth_factor: expected more than 1, got 1");
  EXPECT_ERROR(compiled(plain_loss, {.loss_scale = LossScale{.backoff_factor = 2}}), UserError,
               "loss_scale: backoff_factor: expected more than 0 and at most 1, got 2");
  EXPECT_ERROR(compiled(plain_loss, {.loss_scale = LossScale{.growth_interval = -1}}), UserError,
               "loss_scale: growth_interval: expected at least 0, got -1");
}

TEST(LossScaleErrors, loss_not_scaled) {
  const Example example;
  EXPECT_ERROR(
      example.trainer.loss_scale(), UserError,
      "loss_scale: the loss is not scaled: neither mixed_precision nor loss_scale is enabled");
}

}  // namespace tensorgrad::testing
