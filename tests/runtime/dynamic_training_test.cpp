// SPDX-License-Identifier: MIT
// Training with inputs of a dynamic size: one program per size, one set of parameters and states.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct SequenceNet {
  nn::Linear in{3, 4}, out{4, 2};
  nn::BatchNorm norm{4};
  Buffer steps{Shape{}};
  TG_MODULE(in, out, norm, steps)
};

// Returns the mean error over the rows marked in in["real"]. The other rows are padding.
Tensor masked_loss(const SequenceNet& net, const Inputs& in) {
  net.steps.set(net.steps.tensor() + 1.0);
  const Tensor hidden = dropout(net.norm(tanh(net.in(in["x"]))), 0.25);
  const Tensor error = mse(capture("y", net.out(hidden)), in["y"], Reduction::kNone);
  const Tensor real = unsqueeze(cast(in["real"], f32), 1);
  return sum(error * real) / sum(real);
}

CompileOptions sequence_options(const char* device, std::int64_t rows) {
  CompileOptions options;
  options.inputs = {{"x", {rows, 3}}, {"y", {rows, 2}}, {"real", {rows}, boolean}};
  options.dynamic_size = 2;  // BatchNorm does not support a single row
  options.optimizer = optim::AdamW{.lr = Schedule::cosine(0.05, 0.001, 20)};
  options.clip_grad_norm = 1;
  options.accumulate = 2;
  options.ema_decay = 0.9;
  options.skip_nonfinite = true;
  options.seed = 5;
  options.device = {.kind = device, .allow_software = true};
  return options;
}

// Returns inputs with `real` rows, padded to `rows`.
Feed sequence(std::int64_t rows, std::int64_t real, unsigned seed) {
  std::vector<bool> mask(static_cast<std::size_t>(rows));
  std::fill_n(mask.begin(), real, true);
  return {{"x", numbers(rows * 3, seed)}, {"y", numbers(rows * 2, seed + 100)}, {"real", mask}};
}

// Each step of the dynamic trainer equals that of a trainer with this fixed size, which loads its
// checkpoint first.
void expect_steps_of_sizes(const char* device) {
  auto trainer = compile(SequenceNet{}, masked_loss, sequence_options(device, kDynamic));
  unsigned seed = 0;
  for (const std::int64_t rows : {6, 2, 9, 6, 9, 2}) {
    auto fixed = compile(SequenceNet{}, masked_loss, sequence_options(device, rows));
    fixed.load(trainer.save_bytes());
    const Feed feed = sequence(rows, (rows + 1) / 2, ++seed);
    const StepResult ours = trainer.step(feed, {.captures = {"y"}});
    const StepResult theirs = fixed.step(feed, {.captures = {"y"}});
    EXPECT_EQ(ours.loss, theirs.loss) << rows;
    EXPECT_EQ(ours.step, theirs.step) << rows;
    EXPECT_EQ(ours.captures.at("y").bytes, theirs.captures.at("y").bytes) << rows;
    EXPECT_EQ(trainer.save_bytes(), fixed.save_bytes()) << rows;
    EXPECT_EQ(trainer.grad_norm(), fixed.grad_norm()) << rows;
    EXPECT_EQ(bits_of(trainer.download_grads()), bits_of(fixed.download_grads())) << rows;
  }
  EXPECT_THAT(trainer.compiled_sizes(), ElementsAre(2, 9, 6));
}

TEST(DynamicTraining, steps_equal_those_of_fixed_sizes_on_cpu) { expect_steps_of_sizes("cpu"); }
TEST(DynamicTraining, steps_equal_those_of_fixed_sizes_on_webgpu) {
  expect_steps_of_sizes("webgpu");
}

TEST(DynamicTraining, the_least_recently_used_size_is_evicted) {
  CompileOptions options = sequence_options("cpu", kDynamic);
  options.dynamic_size = 4;
  options.max_cached_sizes = 2;
  auto trainer = compile(SequenceNet{}, masked_loss, options);
  EXPECT_THAT(trainer.compiled_sizes(), ElementsAre(4));
  for (const std::int64_t rows : {7, 8, 7, 4, 9}) trainer.step(sequence(rows, rows, 1));
  EXPECT_THAT(trainer.compiled_sizes(), ElementsAre(4, 9, 7));
  EXPECT_EQ(trainer.steps(), 5);
}

TEST(DynamicTraining, losses_of_all_sizes_are_kept_in_order) {
  auto trainer = compile(SequenceNet{}, masked_loss, sequence_options("cpu", kDynamic));
  auto sliced = compile(SequenceNet{}, masked_loss, sequence_options("cpu", kDynamic));
  for (const std::int64_t rows : {6, 2, 6}) {
    const Feed feed = sequence(rows, rows, 3);
    std::optional<StepResult> step;
    while (!step) step = sliced.step_for(0, feed);  // one launch at a time
    EXPECT_EQ(trainer.step(feed).loss, step->loss) << rows;
  }
  EXPECT_EQ(trainer.save_bytes(), sliced.save_bytes());
}

TEST(DynamicTraining, a_dataset_serves_all_sizes) {
  CompileOptions options;
  options.inputs = {{"scale", {kDynamic}}};
  options.dataset = {{"x", {6, 3}}};
  options.batch = 2;
  options.shuffle = false;
  options.optimizer = optim::SGD{.lr = 0};
  options.device.kind = "cpu";
  auto trainer = compile(
      SequenceNet{},
      [](const SequenceNet& net, const Inputs& in) {
        return sum(in["x"]) * sum(in["scale"]) + 0.0 * sum(net.in.weight.tensor());
      },
      options);
  std::vector<float> x(18);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i < 6 ? 1 : i < 12 ? 10 : 100;
  trainer.upload_data("x", x);
  EXPECT_EQ(trainer.step({{"scale", std::vector<float>{1}}}).loss, 6);
  EXPECT_EQ(trainer.step({{"scale", std::vector<float>{1, 2}}}).loss, 180);
  EXPECT_EQ(trainer.step({{"scale", std::vector<float>{1, 2, 3}}}).loss, 3600);
}

TEST(DynamicTraining, nan_is_found_in_the_program_of_its_size) {
  CompileOptions options = sequence_options("cpu", kDynamic);
  options.skip_nonfinite = false;
  options.detect_nan = true;
  auto trainer = compile(SequenceNet{}, masked_loss, options);
  trainer.step(sequence(3, 3, 1));
  std::vector<float> x(5 * 3, 1);
  x[7] = std::numeric_limits<float>::quiet_NaN();
  const Feed feed{{"x", x}, {"y", numbers(10, 2)}, {"real", std::vector<bool>(5, true)}};
  try {
    trainer.step(feed);
    ADD_FAILURE() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("f32[5,"));
  }
}

TEST(DynamicTraining, sizes_are_padded_to_the_next_of_a_list) {
  EXPECT_EQ(padded_size(1, {32, 8, 16}), 8);
  EXPECT_EQ(padded_size(8, {32, 8, 16}), 8);
  EXPECT_EQ(padded_size(9, {32, 8, 16}), 16);
  EXPECT_EQ(padded_size(0, {0}), 0);
  EXPECT_THROW(padded_size(33, {32, 8, 16}), UserError);
  EXPECT_THROW(padded_size(-1, {32}), UserError);
  EXPECT_THROW(padded_size(1, {}), UserError);
}

}  // namespace
}  // namespace tensorgrad::testing
