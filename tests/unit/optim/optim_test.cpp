// SPDX-License-Identifier: MIT
// Every optimizer and every schedule against PyTorch (tests/golden/make_fixtures.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kSteps = 12, kSize = 8;
constexpr const char* kFixture = TENSORGRAD_SOURCE_DIR "/tests/golden/optim.safetensors";

std::vector<float> fixture(const std::string& name) {
  static const StoredFile file = read_safetensors(kFixture);
  const std::vector<std::byte>& data = file.tensors.at(name).data;
  std::vector<float> values(data.size() / sizeof(float));
  std::memcpy(values.data(), data.data(), data.size());
  return values;
}

struct Vector {
  Parameter w{{kSize}};
  TG_MODULE(w)
};

struct OptimizerCase {
  const char* name;
  Optimizer optimizer;
  double clip = 0;
};

class AgainstPyTorch : public ::testing::TestWithParam<OptimizerCase> {};

// The gradient of sum(w * g) is g, bit for bit.
TEST_P(AgainstPyTorch, parameter_is_the_same_after_every_step) {
  const OptimizerCase& each = GetParam();
  auto trainer =
      compile(Vector{}, [](const Vector& m, const Inputs& in) { return sum(m.w * in["g"]); },
              {.inputs = {{"g", {kSize}}},
               .optimizer = each.optimizer,
               .clip_grad_norm = each.clip,
               .device = {.kind = "cpu"}});
  auto params = trainer.download_params();
  const std::vector<float> start = fixture("start"), grads = fixture("grads"),
                           after = fixture(std::string("optimizer/") + each.name);
  std::memcpy(params.at("w").bytes.data(), start.data(), kSize * sizeof(float));
  trainer.upload_params(params);
  std::vector<double> largest(kSize, 1);  // rounding stays when a value has become small again
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const std::vector<float> g(grads.begin() + step * kSize, grads.begin() + (step + 1) * kSize);
    trainer.step({{"g", g}});
    const std::vector<float> w = trainer.download_params().at("w").floats();
    for (std::size_t i = 0; i < kSize; ++i) {
      const double want = after[static_cast<std::size_t>(step * kSize) + i];
      largest[i] = std::max(largest[i], std::abs(want));
      EXPECT_NEAR(w[i], want, 3e-6 * largest[i]) << "step " << step << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizer, AgainstPyTorch,
    ::testing::Values(
        OptimizerCase{"sgd", optim::SGD{.lr = 0.1}},
        OptimizerCase{"sgd_decay", optim::SGD{.lr = 0.1, .weight_decay = 0.3}},
        OptimizerCase{"sgd_momentum", optim::SGD{.lr = 0.1, .momentum = 0.9}},
        OptimizerCase{"sgd_momentum_decay",
                      optim::SGD{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.3}},
        OptimizerCase{
            "sgd_nesterov_decay",
            optim::SGD{.lr = 0.1, .momentum = 0.8, .nesterov = true, .weight_decay = 0.3}},
        OptimizerCase{"sgd_clip", optim::SGD{.lr = 0.1}, 100},
        OptimizerCase{"adam", optim::Adam{.lr = 0.1}},
        OptimizerCase{"adam_decay", optim::Adam{.lr = 0.1, .weight_decay = 0.3}},
        OptimizerCase{"adam_betas",
                      optim::Adam{.lr = 0.1, .beta1 = 0.5, .beta2 = 0.8, .eps = 1e-3}},
        OptimizerCase{"adamw", optim::AdamW{.lr = 0.1, .weight_decay = 0.3}},
        OptimizerCase{"adamw_clip", optim::AdamW{.lr = 0.1, .weight_decay = 0.3}, 100},
        OptimizerCase{"adamw_no_decay", optim::AdamW{.lr = 0.1, .weight_decay = 0}}),
    [](const auto& each) { return std::string(each.param.name); });

void expect_rates(const std::string& name, const Schedule& schedule) {
  const std::vector<float> parts = fixture("schedule/" + name);
  const auto count = static_cast<std::int64_t>(parts.size() / 2);
  ASSERT_EQ(count, 40);
  const Schedule read = Schedule::parse(schedule.text());
  for (std::int64_t t = 0; t < count; ++t) {
    const double want = static_cast<double>(parts[static_cast<std::size_t>(t)]) +
                        parts[static_cast<std::size_t>(count + t)];
    EXPECT_NEAR(schedule.at(t), want, 1e-12) << name << " at step " << t;
    EXPECT_EQ(read.at(t), schedule.at(t)) << name << " at step " << t;
  }
}

TEST(Schedule, gives_the_rates_of_pytorch_and_is_read_back_exactly) {
  expect_rates("constant", 0.5);
  expect_rates("linear", Schedule::linear(0.5, 0.05, 30));
  expect_rates("cosine", Schedule::cosine(0.5, 0.05, 39));
  expect_rates("step", Schedule::step(0.5, 7, 0.5));
  expect_rates("multi_step", Schedule::multi_step(0.5, {3, 10, 10, 25}, 0.5));
  expect_rates("warmup_constant", Schedule::warmup(5, 0.5));
  expect_rates("warmup_cosine", Schedule::warmup(10, Schedule::cosine(0.5, 0, 30)));
}

TEST(Schedule, stays_at_its_end) {
  EXPECT_EQ(Schedule::linear(0.5, 0.125, 4).at(1000), 0.125);
  EXPECT_EQ(Schedule::cosine(0.5, 0.125, 4).at(1000), 0.125);
  const Schedule two = Schedule::warmup(2, Schedule::warmup(3, Schedule::linear(1, 0, 5)));
  EXPECT_DOUBLE_EQ(two.at(0), 0.25 / 3);
  EXPECT_DOUBLE_EQ(two.at(2), 0.25);
  EXPECT_DOUBLE_EQ(two.at(5), 1);
  EXPECT_DOUBLE_EQ(two.at(9), 0.2);
  EXPECT_EQ(two.at(100), 0);
}

TEST(Schedule, refuses_text_that_is_none) {
  for (const char* text :
       {"", "x", "0", "0 0x1p-1", "0 0x1p-1 0x0p+0 0", "7 0 0 1 0", "-1 0 0 1 0", "1 1 0 0 0",
        "1 1 0 -3 0", "3 0 0 5 0", "3 0 0 5 0 9", "5 1 0 0 3 1 2", "5 1 0 0 999999999999 1",
        "5 1 0 0 2 5 3", "0 half 0 0 0", "0 nan 0 0 0", "0 1 0 0 0 junk"}) {
    EXPECT_THROW(Schedule::parse(text), IoError) << "'" << text << "'";
  }
}

TEST(Schedule, refuses_text_that_nests_without_end) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "3 0 0 1 0 ";
  EXPECT_THROW(Schedule::parse(text + "0 1 0 0 0"), IoError);
}

// The rate of a trainer's next step, and what set_lr() and a run-time scalar change.
TEST(Optimizer, weight_decay_is_a_scalar_that_can_be_set) {
  auto trainer =
      compile(Vector{}, [](const Vector& m, const Inputs& in) { return sum(m.w * in["g"]); },
              {.inputs = {{"g", {kSize}}},
               .optimizer = optim::SGD{.lr = 0.5, .weight_decay = 1},
               .device = {.kind = "cpu"}});
  auto params = trainer.download_params();
  const std::vector<float> ones(kSize, 1), none(kSize, 0);
  std::memcpy(params.at("w").bytes.data(), ones.data(), kSize * sizeof(float));
  trainer.upload_params(params);
  trainer.step({{"g", none}});
  EXPECT_EQ(trainer.download_params().at("w").floats()[0], 0.5F);
  trainer.set("weight_decay", 0);
  trainer.step({{"g", none}});
  EXPECT_EQ(trainer.download_params().at("w").floats()[0], 0.5F);
}

}  // namespace
}  // namespace tensorgrad::testing
