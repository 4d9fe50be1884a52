// SPDX-License-Identifier: MIT
// Mistakes with several objectives.
#include <cstdint>
#include <utility>
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {

TEST(ObjectiveErrors, no_objectives) {
  const std::vector<ObjectiveSpec<Net>> none;
  EXPECT_ERROR(compiled(none), UserError, "compile: expected at least one objective, got none");
}

TEST(ObjectiveErrors, name_unknown) {
  auto trainer = compiled(two_objectives());
  EXPECT_ERROR(trainer["a"], UserError, "unknown objective 'a'; available: w, b");
}

TEST(ObjectiveErrors, name_repeated) {
  auto objectives = two_objectives();
  objectives[1].name = "w";
  EXPECT_ERROR(compiled(objectives), UserError, "compile: two objectives are named 'w'");
}

TEST(ObjectiveErrors, name_of_two_words) {
  auto objectives = two_objectives();
  objectives[1].name = "the bias";
  EXPECT_ERROR(
      compiled(objectives), UserError,
      "compile: objective names may only contain letters, digits, '_' and '-', got 'the bias'");
}

TEST(ObjectiveErrors, name_empty) {
  std::vector<ObjectiveSpec<Net>> objectives = two_objectives();
  objectives.resize(1);
  objectives[0].name = "";
  EXPECT_ERROR(compiled(objectives), UserError,
               "compile: objective names may only contain letters, digits, '_' and '-', got ''");
}

TEST(ObjectiveErrors, pattern_matches_nothing) {
  auto objectives = two_objectives();
  objectives[1].params = "*.biass";
  EXPECT_ERROR(compiled(objectives), UserError,
               "objective 'b': no parameter matches; available: fc.weight, fc.bias");
}

TEST(ObjectiveErrors, loss_missing) {
  auto objectives = two_objectives();
  objectives[1].loss = nullptr;
  EXPECT_ERROR(compiled(objectives), UserError, "compile: the objective 'b' has no loss");
}

TEST(ObjectiveErrors, optimizer_missing) {
  auto objectives = two_objectives();
  objectives[1].options.optimizer = {};
  EXPECT_ERROR(compiled(objectives), UserError, "compile: an optimizer is required");
}

TEST(ObjectiveErrors, seed_in_objective) {
  auto objectives = two_objectives();
  objectives[1].options.seed = 3;
  EXPECT_ERROR(
      compiled(objectives), UserError,
      "objective 'b': seed, device, memory_budget and initial must be set in TrainerOptions");
}

TEST(ObjectiveErrors, recovery_in_objective) {
  auto objectives = two_objectives();
  objectives[1].options.recovery.snapshot_steps = 10;
  EXPECT_ERROR(compiled(objectives), UserError,
               "objective 'b': recovery must be set in TrainerOptions");
}

TEST(ObjectiveErrors, input_missing) {
  auto trainer = compiled(two_objectives());
  EXPECT_ERROR(trainer["w"].step({{"x", std::vector<float>(12)}}), UserError,
               "input 'y' is missing; expected inputs: x, y");
}

TEST(ObjectiveErrors, loss_nan) {
  // The parameter that this objective trains is not at the start of the arena.
  auto objectives = two_objectives();
  objectives[1].options.detect_nan = true;
  objectives[1].loss = [](const Net& net, In in) {
    return sum(FAULTY(log(*net.fc.bias))) + plain_loss(net, in);
  };
  auto trainer = compiled(objectives);
  const std::vector<float> bias = {1, -1}, x(12), y(8);
  const HostTensor value = HostTensor::from({2}, bias);
  trainer.upload_params({{"fc.bias", value}}, {.partial = true});
  EXPECT_ERROR(trainer["b"].step({{"x", x}, {"y", y}}), UserError,
               "step 1: the loss is nan; the first op to produce NaN or infinity is log (element 1 "
               "of f32[2] is nan)");
}

TEST(ObjectiveErrors, memory_budget_too_small) {
  const auto objectives = two_objectives();
  const std::int64_t need = compiled(objectives).report().peak_bytes;
  EXPECT_ERROR(
      compiled(objectives, need - 1), UserError,
      MatchesRegex(
          "memory budget: the objectives need [0-9]+ bytes in total, the budget is [0-9]+"));
}

TEST(ObjectiveErrors, parameter_averaged_twice) {
  auto objectives = two_objectives();
  for (auto& each : objectives) each.options.ema_decay = 0.5;
  objectives[1].params = {};
  EXPECT_ERROR(
      compiled(objectives), UserError,
      "ema_decay: the objectives 'w' and 'b' both train 'fc.weight': only one may average it");
}

TEST(ObjectiveErrors, dataset_types_differ) {
  auto objectives = two_objectives();
  for (auto& each : objectives) {
    each.options.inputs = {};
    each.options.dataset = {{"x", {8, 3}}, {"y", {8, 2}}};
    each.options.batch = 4;
  }
  objectives[1].options.dataset = {{"x", {9, 3}}, {"y", {9, 2}}};
  EXPECT_ERROR(compiled(objectives), UserError,
               "dataset entry 'x': types differ: f32[8,3] in objective 'w', f32[9,3] in 'b'");
}

TEST(ObjectiveErrors, state_initial_values_differ) {
  auto objectives = two_objectives();
  objectives[1].loss = [](const Net& net, In in) {
    return plain_loss(net, in) + state("bias", {}, 1);
  };
  objectives[0].loss = [](const Net& net, In in) {
    return plain_loss(net, in) + state("bias", {}, 0);
  };
  EXPECT_ERROR(compiled(objectives), UserError,
               "state 'bias': objectives 'w' and 'b' disagree on its type or initial value");
}

TEST(ObjectiveErrors, moved_from) {
  MultiTrainer<Net> trainer = compiled(two_objectives());
  const MultiTrainer<Net> other = std::move(trainer);
  // NOLINTNEXTLINE(bugprone-use-after-move): the mistake
  EXPECT_ERROR(trainer["w"], UserError, "MultiTrainer: used after it was moved from");
}

}  // namespace tensorgrad::testing
