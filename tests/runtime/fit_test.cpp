// SPDX-License-Identifier: MIT
// Training over a data loader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Fitted {
  nn::Linear hidden{3, 8}, out{8, 2};
  TG_MODULE(hidden, out)
  Tensor operator()(const Tensor& x) const { return out(tanh(hidden(x))); }
};

Trainer<Fitted> fitted_trainer(bool detect_nan = false) {
  return compile(Fitted{},
                 [](const Fitted& net, const Inputs& in) { return mse(net(in["x"]), in["y"]); },
                 {.inputs = {{"x", {4, 3}}, {"y", {4, 2}}},
                  .optimizer = optim::Adam{.lr = 0.01},
                  .seed = 3,
                  .device = {.kind = "cpu"},
                  .detect_nan = detect_nan});
}

// 22 samples: five batches of four.
DataLoader fitted_loader() {
  return {22,
          [](std::int64_t i) -> NamedTensors {
            const auto seed = static_cast<unsigned>(i);
            return {{"x", HostTensor::from({3}, numbers(3, seed))},
                    {"y", HostTensor::from({2}, numbers(2, seed + 100))}};
          },
          {.batch = 4, .seed = 5}};
}

TEST(Fit, makes_the_steps_of_a_loop_over_the_loader) {
  auto fitted = fitted_trainer(), looped = fitted_trainer();
  DataLoader one = fitted_loader(), other = fitted_loader();
  const FitResult result = fitted.fit(one, {.epochs = 3});
  for (int epoch = 0; epoch < 3; ++epoch) {
    double sum = 0;
    for (int i = 0; i < 5; ++i) sum += looped.step(other.next()).loss;
    const FitEpoch& got = result.epochs.at(static_cast<std::size_t>(epoch));
    EXPECT_EQ(got.epoch, epoch);
    EXPECT_DOUBLE_EQ(got.loss, sum / 5);
    EXPECT_GT(got.seconds, 0);
  }
  EXPECT_EQ(result.epochs.size(), 3U);
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(everything(fitted), everything(looped));
  EXPECT_EQ(one.state(), other.state());
}

TEST(Fit, begins_with_the_rest_of_the_epoch) {
  auto trainer = fitted_trainer();
  DataLoader loader = fitted_loader();
  trainer.submit(loader.next());
  trainer.submit(loader.next());
  std::vector<std::int64_t> steps;
  trainer.fit(loader, {.epochs = 2, .on_progress = [&](const FitProgress& progress) {
                         EXPECT_EQ(progress.step, progress.steps);
                         EXPECT_GT(progress.steps_per_second, 0);
                         EXPECT_TRUE(std::isfinite(progress.loss));
                         steps.push_back(progress.steps);
                       }});
  EXPECT_THAT(steps, ElementsAre(3, 5));
  EXPECT_EQ(trainer.steps(), 10);
}

TEST(Fit, reports_progress_within_an_epoch) {
  auto trainer = fitted_trainer();
  DataLoader loader = fitted_loader();
  std::vector<std::int64_t> steps;
  trainer.fit(loader, {.on_progress = [&](const FitProgress& p) { steps.push_back(p.step); },
                       .progress_seconds = 1e-9});
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 5));
}

TEST(Fit, keeps_the_best_epoch_and_stops_early) {
  auto trainer = fitted_trainer();
  DataLoader loader = fitted_loader();
  const std::string path = temporary("best.safetensors");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values = {3, nan, 2, 2.5, 2, 1};
  std::size_t validations = 0;
  std::vector<bool> best;
  const FitResult result =
      trainer.fit(loader, {.epochs = 6,
                           .validate = [&] { return values.at(validations++); },
                           .patience = 2,
                           .best_checkpoint = path,
                           .on_epoch =
                               [&](const FitEpoch& epoch) {
                                 EXPECT_EQ(epoch.best, best.empty() || best.size() == 2);
                                 best.push_back(epoch.best);
                                 return true;
                               }});
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.epochs.size(), 5U) << "the value of 2 is no improvement";
  EXPECT_EQ(result.best, 2U);
  EXPECT_EQ(result.epochs[2].validation, 2);
  auto kept = fitted_trainer(), looped = fitted_trainer();
  kept.load(path);
  std::filesystem::remove(path);
  DataLoader other = fitted_loader();
  for (int i = 0; i < 15; ++i) looped.step(other.next());
  EXPECT_EQ(everything(kept), everything(looped)) << "the state after the third epoch";
}

TEST(Fit, stops_if_the_callback_returns_false) {
  auto trainer = fitted_trainer();
  DataLoader loader = fitted_loader();
  const auto stops_at = [](std::int64_t last) {
    return [last](const FitEpoch& epoch) { return epoch.epoch < last; };
  };
  FitResult result = trainer.fit(loader, {.epochs = 9, .on_epoch = stops_at(1)});
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.epochs.size(), 2U);
  result = trainer.fit(loader, {.epochs = 2, .on_epoch = stops_at(1)});
  EXPECT_FALSE(result.stopped) << "it was the last epoch anyway";
}

TEST(Fit, waits_for_each_loss_with_detect_nan) {
  auto checked = fitted_trainer(true), plain = fitted_trainer();
  DataLoader one = fitted_loader(), other = fitted_loader();
  EXPECT_EQ(checked.fit(one).epochs.at(0).loss, plain.fit(other).epochs.at(0).loss);
}

TEST(Fit, options_out_of_range_are_rejected) {
  auto trainer = fitted_trainer();
  DataLoader loader = fitted_loader();
  const auto rejects = [&](const FitOptions& options, const std::string& message) {
    EXPECT_THAT([&] { trainer.fit(loader, options); },
                ThrowsMessage<UserError>(HasSubstr(message)));
  };
  rejects({.epochs = 0}, "fit: expected at least 1 epoch, got 0");
  rejects({.patience = -1}, "fit: expected a patience of at least 0, got -1");
  rejects({.progress_seconds = 0}, "fit: expected progress_seconds above 0, got 0");
  EXPECT_EQ(trainer.steps(), 0);
  EXPECT_EQ(loader.state().position, 0);
}

TEST(EarlyStopping, stops_after_patience_without_improvement) {
  EarlyStopping stop(2);
  EXPECT_TRUE(stop.update(3));
  EXPECT_FALSE(stop.update(3));
  EXPECT_TRUE(stop.update(2));
  EXPECT_FALSE(stop.update(2.5));
  EXPECT_FALSE(stop.should_stop());
  EXPECT_FALSE(stop.update(2.1));
  EXPECT_TRUE(stop.should_stop());
  EXPECT_EQ(stop.best(), 2);
  EarlyStopping never(0);
  for (int i = 0; i < 9; ++i) never.update(1 + i);
  EXPECT_FALSE(never.should_stop());
}

}  // namespace
}  // namespace tensorgrad::testing
