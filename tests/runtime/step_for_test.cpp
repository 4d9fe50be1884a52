// SPDX-License-Identifier: MIT
// Steps executed a few launches at a time, and submits of limited length.
#include <gtest/gtest.h>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

struct Parted {
  nn::Linear hidden{3, 8}, out{8, 2};
  TG_MODULE(hidden, out)
  Tensor operator()(const Tensor& x) const { return out(tanh(hidden(x))); }
};

Trainer<Parted> parted_trainer(const std::string& kind, double submit_milliseconds = 0) {
  return compile(
      Parted{}, [](const Parted& net, const Inputs& in) { return mse(net(in["x"]), in["y"]); },
      {.inputs = {{"x", {4, 3}}, {"y", {4, 2}}},
       .optimizer = optim::Adam{.lr = 0.05},
       .clip_grad_norm = 0.1,
       .seed = 3,
       .device = {
           .kind = kind, .allow_software = true, .submit_milliseconds = submit_milliseconds}});
}

struct Sample {
  std::vector<float> x, y;
  explicit Sample(unsigned seed) : x(numbers(12, seed)), y(numbers(8, seed + 100)) {}
  operator FeedView() const { return {{"x", x}, {"y", y}}; }  // NOLINT
};

// Returns the number of calls that the step takes.
int finish_step(Trainer<Parted>& trainer, const FeedView& inputs, StepResult& result) {
  for (int calls = 1;; ++calls) {
    if (const auto done = trainer.step_for(0, inputs)) {
      result = *done;
      return calls;
    }
  }
}

void makes_the_steps_of_step(const std::string& kind) {
  auto whole = parted_trainer(kind), parts = parted_trainer(kind);
  for (unsigned i = 0; i < 4; ++i) {
    const StepResult want = whole.step(Sample(i));
    StepResult got;
    EXPECT_GT(finish_step(parts, Sample(i), got), 1) << "no time at all is enough for one launch";
    EXPECT_EQ(got.loss, want.loss);
    EXPECT_EQ(got.step, want.step);
  }
  EXPECT_EQ(everything(parts), everything(whole));
  EXPECT_TRUE(parts.step_for(60, Sample(9)).has_value()) << "a minute is enough for all of it";
}
TEST(StepFor, matches_step_on_cpu) { makes_the_steps_of_step("cpu"); }
TEST(StepFor, matches_step_on_webgpu) { makes_the_steps_of_step("webgpu"); }

void other_calls_finish_the_step(const std::string& kind) {
  auto whole = parted_trainer(kind), parts = parted_trainer(kind);
  auto predict = parts.attach([](const Parted& net, const Inputs& in) { return net(in["x"]); },
                              {.inputs = {{"x", {1, 3}}}});
  const StepResult want = whole.step(Sample(1));
  ASSERT_FALSE(parts.step_for(0, Sample(1)).has_value());
  EXPECT_EQ(parts.steps(), 0) << "it is not done yet";
  static_cast<void>(predict({{"x", numbers(3, 1)}}));
  EXPECT_EQ(parts.steps(), 1);
  EXPECT_EQ(everything(parts), everything(whole));
  const auto got = parts.step_for(0, Sample(2));
  ASSERT_TRUE(got.has_value()) << "the result of the step that predict() finished";
  EXPECT_EQ(got->loss, want.loss);
  ASSERT_FALSE(parts.step_for(0, Sample(2)).has_value());
  EXPECT_EQ(parts.step(Sample(3)).step, 3);
  whole.step(Sample(2));
  whole.step(Sample(3));
  EXPECT_EQ(everything(parts), everything(whole));
}
TEST(StepFor, other_calls_finish_the_step_on_cpu) { other_calls_finish_the_step("cpu"); }
TEST(StepFor, other_calls_finish_the_step_on_webgpu) { other_calls_finish_the_step("webgpu"); }

void cancelled_step_changes_nothing(const std::string& kind) {
  auto trainer = parted_trainer(kind), other = parted_trainer(kind);
  EXPECT_FALSE(trainer.cancel_step()) << "there is none";
  ASSERT_FALSE(trainer.step_for(0, Sample(1)).has_value());
  EXPECT_TRUE(trainer.cancel_step());
  EXPECT_FALSE(trainer.cancel_step());
  EXPECT_EQ(trainer.steps(), 0);
  EXPECT_EQ(trainer.step(Sample(2)).loss, other.step(Sample(2)).loss);
  EXPECT_EQ(everything(trainer), everything(other));
}
TEST(StepFor, cancelled_step_changes_nothing_on_cpu) { cancelled_step_changes_nothing("cpu"); }
TEST(StepFor, cancelled_step_changes_nothing_on_webgpu) {
  cancelled_step_changes_nothing("webgpu");
}

TEST(StepFor, negative_time_is_rejected) {
  auto trainer = parted_trainer("cpu");
  EXPECT_THROW(trainer.step_for(-1, Sample(1)), UserError);
}

TEST(SubmitLimit, changes_no_result_on_webgpu) {
  auto whole = parted_trainer("webgpu"), parts = parted_trainer("webgpu", 0.001);
  for (unsigned i = 0; i < 5; ++i)
    EXPECT_EQ(parts.step(Sample(i)).loss, whole.step(Sample(i)).loss);
  EXPECT_EQ(everything(parts), everything(whole));
}

TEST(SubmitLimit, below_zero_is_rejected) { EXPECT_THROW(parted_trainer("cpu", -1), UserError); }

}  // namespace
}  // namespace tensorgrad::testing
