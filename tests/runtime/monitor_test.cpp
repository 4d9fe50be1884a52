// SPDX-License-Identifier: MIT
// Early stopping, best checkpoints and learning-rate searches of a trainer.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <stdexcept>

#include "runtime/shared.h"
#include "support/message_of.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

struct LineNet {
  nn::Linear layer{3, 2};
  TG_MODULE(layer)
  Tensor operator()(Tensor x) const { return layer(x); }
};

Trainer<LineNet> line_trainer() {
  CompileOptions options;
  options.dataset = {{"x", {22, 3}}, {"y", {22, 2}}};
  options.batch = 4;
  options.optimizer = optim::Adam{.lr = Schedule::cosine(0.02, 0.001, 30)};
  options.device = {.kind = "cpu"};
  auto trainer = compile(
      LineNet{}, [](const LineNet& net, const Inputs& in) { return mse(net(in["x"]), in["y"]); },
      options);
  give_data(trainer);
  return trainer;
}

TEST(BestCheckpoint, keeps_the_state_of_the_lowest_loss) {
  auto trainer = line_trainer();
  const std::string path = temporary("best.safetensors");
  BestCheckpoint checkpoint(path);
  EXPECT_FALSE(checkpoint.update(std::nan(""), trainer));
  EXPECT_FALSE(std::filesystem::exists(path));
  trainer.run(3);
  EXPECT_TRUE(checkpoint.update(2, trainer));
  const Bits best = everything(trainer);
  trainer.run(3);
  EXPECT_FALSE(checkpoint.update(2, trainer)) << "equal, not lower";
  EXPECT_EQ(checkpoint.best(), 2);
  auto other = line_trainer();
  other.load(checkpoint.path());
  EXPECT_EQ(everything(other), best);
  EXPECT_EQ(other.steps(), 3);
  BestCheckpoint resumed(path, checkpoint.best());
  EXPECT_FALSE(resumed.update(2.5, trainer));
  EXPECT_TRUE(resumed.update(1.5, trainer));
  other.load(path);
  EXPECT_EQ(other.steps(), 6);
  std::filesystem::remove(path);
  BestCheckpoint failing("/no/such/folder/best.safetensors");
  EXPECT_THROW(failing.update(1, trainer), IoError);
  EXPECT_EQ(failing.best(), std::numeric_limits<double>::infinity()) << "it was not saved";
}

TEST(FindLearningRate, leaves_the_trainer_as_it_was) {
  auto trainer = line_trainer(), untouched = line_trainer();
  trainer.run(7);
  untouched.run(7);
  const LearningRateCurve curve =
      find_learning_rate(trainer, [&] { return trainer.step().loss; }, {.updates = 30});
  ASSERT_GT(curve.rates.size(), 10U);
  EXPECT_EQ(curve.rates.front(), 1e-7);
  EXPECT_EQ(curve.losses.size(), curve.rates.size());
  EXPECT_GT(curve.suggested, 1e-7);
  EXPECT_EQ(everything(trainer), everything(untouched));
  EXPECT_EQ(trainer.lr(), untouched.lr());
  EXPECT_EQ(trainer.run(13), untouched.run(13));

  int calls = 0;
  const auto failing = [&]() -> double {
    trainer.step();
    if (++calls == 3) throw std::runtime_error("no more data");
    return 1;
  };
  EXPECT_THROW(find_learning_rate(trainer, failing), std::runtime_error);
  EXPECT_EQ(trainer.lr(), untouched.lr());
  EXPECT_EQ(trainer.run(13), untouched.run(13));
}

TEST(FindLearningRate, ends_before_a_loss_that_is_not_finite_or_diverges) {
  auto trainer = line_trainer();
  int calls = 0;
  const auto search = [&](std::vector<double> losses, double smoothing) {
    calls = 0;
    const auto next = [&] { return losses.at(static_cast<std::size_t>(calls++)); };
    return find_learning_rate(
        trainer, next,
        {.updates = static_cast<int>(losses.size()), .smoothing = smoothing, .divergence = 3});
  };
  EXPECT_EQ(search({4, 3, std::nan(""), 1}, 0.5).losses, (std::vector<double>{4, 3}));
  EXPECT_EQ(search({4, 3, 10, 1}, 0).losses, (std::vector<double>{4, 3})) << "10 > 3 * 3";
  EXPECT_EQ(search({4, 5, 6, 7}, 0).suggested, 0) << "it does not fall";
  EXPECT_EQ(search({4, 3}, 0).suggested, 0);
}

TEST(FindLearningRate, options_are_checked) {
  auto trainer = line_trainer();
  const auto error = [&](const LearningRateOptions& options) {
    return test::message_of([&] { find_learning_rate(trainer, [] { return 1.0; }, options); });
  };
  EXPECT_EQ(error({.first = 0}), "find_learning_rate: first: expected a rate above 0, got 0");
  EXPECT_EQ(error({.first = 1, .last = 1}),
            "find_learning_rate: last: expected a rate above first, got 1");
  EXPECT_EQ(error({.updates = 1}), "find_learning_rate: updates: expected at least 2, got 1");
  EXPECT_EQ(error({.smoothing = 1}),
            "find_learning_rate: smoothing: expected a number from 0 to below 1, got 1");
  EXPECT_EQ(error({.divergence = 1}),
            "find_learning_rate: divergence: expected a number above 1, got 1");
}

TEST(ConfusionMatrix, errors_name_what_was_given_and_count_nothing) {
  ConfusionMatrix matrix(3);
  EXPECT_TRUE(std::isnan(matrix.accuracy()));
  EXPECT_TRUE(std::isnan(matrix.macro_f1()));
  matrix.add(0, 2);
  matrix.add(2, 2);
  EXPECT_EQ(matrix.count(0, 2), 1);
  EXPECT_EQ(matrix.accuracy(), 0.5);
  EXPECT_EQ(matrix.precision(2), 0.5);
  EXPECT_EQ(matrix.recall(2), 1);
  EXPECT_TRUE(std::isnan(matrix.recall(1)));
  const std::vector<std::int32_t> labels = {0, 3};
  const std::vector<float> scores = {1, 2, 2, 0, 0, 0}, nan = {1, 2, 3, 0, std::nanf(""), 0};
  EXPECT_EQ(test::message_of([&] { matrix.add(labels, scores); }),
            "ConfusionMatrix: expected a class from 0 to 2, got 3");
  EXPECT_EQ(test::message_of([&] { matrix.add(std::span(labels).first(1), scores); }),
            "ConfusionMatrix: expected 3 scores for 1 labels, got 6");
  EXPECT_EQ(test::message_of([&] { matrix.add(std::vector{0, 1}, nan); }),
            "ConfusionMatrix: a score of example 1 is NaN");
  EXPECT_EQ(matrix.total(), 2) << "nothing was counted";
  matrix.add(std::vector{1}, std::span(scores).first(3));
  EXPECT_EQ(matrix.count(1, 1), 1) << "of equal scores, the first";
  EXPECT_EQ(test::message_of([&] { (void)matrix.f1(-1); }),
            "ConfusionMatrix: expected a class from 0 to 2, got -1");
  EXPECT_EQ(test::message_of([] { ConfusionMatrix(0); }),
            "ConfusionMatrix: expected 1 to 30000 classes, got 0");
}

}  // namespace
}  // namespace tensorgrad::testing
