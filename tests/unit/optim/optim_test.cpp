// SPDX-License-Identifier: MIT
// Every optimizer and every schedule, compared with PyTorch (tests/golden/make_fixtures.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/source_path.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kSteps = 12, kSize = 8;
const std::string kFixture = test::source_path("tests/golden/optim.safetensors");

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

// Returns a trainer on the CPU whose gradients are exactly its input g: the loss is sum(w * g).
Trainer<Vector> descending(CompileOptions options) {
  options.inputs = {{"g", {kSize}}};
  options.device = {.kind = "cpu"};
  return compile(
      Vector{}, [](const Vector& m, const Inputs& in) { return sum(m.w * in["g"]); }, options);
}

struct OptimizerCase {
  const char* name;
  Optimizer optimizer;
  double clip = 0;
  double clip_value = 0;
  bool normalize = false;
};

class AgainstPyTorch : public ::testing::TestWithParam<OptimizerCase> {};

TEST_P(AgainstPyTorch, parameter_is_the_same_after_every_step) {
  const OptimizerCase& each = GetParam();
  auto trainer = descending({.optimizer = each.optimizer,
                             .normalize_grads = each.normalize ? ParamFilter("w") : ParamFilter(),
                             .clip_grad_value = each.clip_value,
                             .clip_grad_norm = each.clip});
  const std::vector<float> start = fixture("start"), grads = fixture("grads"),
                           after = fixture(std::string("optimizer/") + each.name);
  trainer.upload_params({{"w", HostTensor::from({kSize}, start)}});
  std::vector<double> largest(kSize, 1);  // rounding errors remain when a value becomes small again
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
        OptimizerCase{"adamw_no_decay", optim::AdamW{.lr = 0.1, .weight_decay = 0}},
        OptimizerCase{"sgd_dampening", optim::SGD{.lr = 0.1, .momentum = 0.9, .dampening = 0.4}},
        OptimizerCase{
            "sgd_maximize",
            optim::SGD{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.3, .maximize = true}},
        OptimizerCase{"adam_amsgrad", optim::Adam{.lr = 0.1, .beta2 = 0.8, .amsgrad = true}},
        OptimizerCase{"adam_maximize",
                      optim::Adam{.lr = 0.1, .weight_decay = 0.3, .maximize = true}},
        OptimizerCase{"adamw_amsgrad",
                      optim::AdamW{.lr = 0.1, .beta2 = 0.8, .weight_decay = 0.3, .amsgrad = true}},
        OptimizerCase{"nadam", optim::NAdam{.lr = 0.1, .weight_decay = 0.3}},
        OptimizerCase{"nadam_decoupled", optim::NAdam{.lr = 0.1,
                                                      .beta1 = 0.8,
                                                      .beta2 = 0.9,
                                                      .weight_decay = 0.3,
                                                      .momentum_decay = 0.1,
                                                      .decoupled_weight_decay = true}},
        OptimizerCase{"radam", optim::RAdam{.lr = 0.1, .weight_decay = 0.3}},
        OptimizerCase{"radam_decoupled", optim::RAdam{.lr = 0.1,
                                                      .beta1 = 0.8,
                                                      .beta2 = 0.9,
                                                      .weight_decay = 0.3,
                                                      .decoupled_weight_decay = true,
                                                      .maximize = true}},
        OptimizerCase{"rmsprop", optim::RMSprop{.lr = 0.1}},
        OptimizerCase{
            "rmsprop_momentum",
            optim::RMSprop{.lr = 0.1, .alpha = 0.8, .weight_decay = 0.3, .momentum = 0.9}},
        OptimizerCase{"rmsprop_centered", optim::RMSprop{.lr = 0.1,
                                                         .alpha = 0.8,
                                                         .eps = 1e-3,
                                                         .centered = true,
                                                         .maximize = true}},
        OptimizerCase{"adagrad", optim::Adagrad{.lr = 0.1, .maximize = true}},
        OptimizerCase{"adagrad_decay", optim::Adagrad{.lr = 0.1,
                                                      .lr_decay = 0.2,
                                                      .weight_decay = 0.3,
                                                      .initial_accumulator_value = 0.5}},
        OptimizerCase{
            "adadelta",
            optim::Adadelta{
                .lr = 0.5, .rho = 0.8, .eps = 1e-3, .weight_decay = 0.3, .maximize = true}},
        OptimizerCase{"clip_value", optim::SGD{.lr = 0.1}, 0, 0.5},
        OptimizerCase{"normalize", optim::SGD{.lr = 0.1}, 0, 0, true},
        OptimizerCase{"adam_epsilon_hat", optim::Adam{.lr = 0.1, .eps = 1e-3, .epsilon_hat = true}},
        OptimizerCase{"lion", optim::Lion{.lr = 0.1, .weight_decay = 0.3}}),
    [](const auto& each) { return std::string(each.param.name); });

struct Several {
  Parameter wide{{3, 5}}, bias{{5}}, tall{{6, 2}};
  TG_MODULE(wide, bias, tall)
};
const std::vector<std::string> kNames = {"wide", "bias", "tall"};

CompileOptions several_options(Optimizer optimizer, const std::string& kind) {
  return {.inputs = {{"wide", {3, 5}}, {"bias", {5}}, {"tall", {6, 2}}},
          .optimizer = std::move(optimizer),
          .device = {.kind = kind, .allow_software = true}};
}

// Runs twelve steps with the gradients of the fixture.
Trainer<Several> several_steps(const CompileOptions& options) {
  auto trainer = compile(
      Several{},
      [](const Several& m, const Inputs& in) {
        return sum(m.wide * in["wide"]) + sum(m.bias * in["bias"]) + sum(m.tall * in["tall"]);
      },
      options);
  auto params = trainer.download_params();
  std::map<std::string, std::vector<float>> grads;
  for (const std::string& name : kNames) {
    const std::vector<float> start = fixture("several/start/" + name);
    std::memcpy(params.at(name).bytes.data(), start.data(), start.size() * sizeof(float));
    grads[name] = fixture("several/grads/" + name);
  }
  trainer.upload_params(params);
  for (std::ptrdiff_t step = 0; step < 12; ++step) {
    std::map<std::string, std::vector<float>> given;
    FeedView feed;
    for (const std::string& name : kNames) {
      const auto size = static_cast<std::ptrdiff_t>(grads[name].size()) / 12;
      given[name] = {grads[name].begin() + step * size, grads[name].begin() + (step + 1) * size};
      feed.add(name, given[name]);
    }
    trainer.step(feed);
  }
  return trainer;
}

void expect_params(const std::string& name, const std::map<std::string, HostTensor>& params,
                   double tolerance = 3e-6) {
  ASSERT_EQ(params.size(), kNames.size());
  for (const auto& [parameter, tensor] : params) {
    const std::vector<float> want = fixture("several/" + name + "/" + parameter);
    const std::vector<float> got = tensor.floats();
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], tolerance) << name << " " << parameter << " " << i;
  }
}

// The bias has no decay and a fifth of the rate, as in PyTorch's param_groups. `tall` is frozen.
CompileOptions grouped_options(const std::string& kind) {
  CompileOptions options = several_options(optim::AdamW{.lr = 0.1, .weight_decay = 0.3}, kind);
  options.groups = {{.params = "b*s", .lr_factor = 0.2, .weight_decay = 0},
                    {.params = "tall", .freeze = true}};
  return options;
}

void expect_groups(const std::string& kind) {
  auto trainer = several_steps(grouped_options(kind));
  expect_params("groups", trainer.download_params());
  EXPECT_EQ(trainer.download_params().at("tall").floats(), fixture("several/start/tall"));
  EXPECT_FALSE(trainer.download_grads().contains("tall"));
  EXPECT_FALSE(trainer.download_optimizer().contains("exp_avg/tall"));
}
TEST(Groups, rates_and_decays_match_pytorch_on_cpu) { expect_groups("cpu"); }
TEST(Groups, rates_and_decays_match_pytorch_on_webgpu) { expect_groups("webgpu"); }

// Trains rows 1, 2 and 5 of `tall`, all of the bias, and none of `wide`.
CompileOptions rows_options(const std::string& kind) {
  CompileOptions options = several_options(optim::AdamW{.lr = 0.1, .weight_decay = 0.3}, kind);
  options.groups = {{.params = "tall",
                     .rows = [](const std::string&, const Shape&) -> std::vector<RowRange> {
                       return {{1, 3}, {5, 6}};
                     }},
                    {.params = "wide", .freeze = true}};
  return options;
}

void expect_rows(const std::string& kind) {
  const std::vector<float> start = fixture("several/start/tall");
  // AdamW is elementwise, so trained rows have the same values as if all are trained.
  auto all = several_steps(several_options(optim::AdamW{.lr = 0.1, .weight_decay = 0.3}, kind));
  const auto want = all.download_params();
  CompileOptions options = rows_options(kind);
  options.ema_decay = 0.9;
  auto trainer = several_steps(options);
  const auto got = trainer.download_params();
  EXPECT_EQ(got.at("bias").floats(), want.at("bias").floats());
  const std::vector<float> tall = got.at("tall").floats(), whole = want.at("tall").floats();
  const std::vector<float> averages = trainer.download_ema().at("tall").floats();
  for (std::size_t i = 0; i < tall.size(); ++i) {
    const std::size_t row = i / 2;
    const bool trained = row == 1 || row == 2 || row == 5;
    EXPECT_EQ(tall[i], trained ? whole[i] : start[i]) << i;
    EXPECT_NE(whole[i], start[i]) << i;
    EXPECT_TRUE(trained || std::abs(averages[i] - start[i]) < 1e-6F) << i;
  }
  // Frozen elements do not count for the norm of the gradients.
  options.clip_grad_norm = 1e6;
  auto clipped = several_steps(options);
  double square = 0;
  const auto grads = clipped.download_grads();
  for (const double g : grads.at("bias").floats()) square += g * g;
  const std::vector<float> of_tall = grads.at("tall").floats();
  for (const std::size_t row : {1U, 2U, 5U}) {
    for (const std::size_t column : {0U, 1U}) square += std::pow(of_tall[2 * row + column], 2);
  }
  EXPECT_NEAR(clipped.grad_norm(), std::sqrt(square), 1e-5);
}
TEST(Groups, other_rows_stay_unchanged_on_cpu) { expect_rows("cpu"); }
TEST(Groups, other_rows_stay_unchanged_on_webgpu) { expect_rows("webgpu"); }

TEST(Groups, rows_out_of_range_are_rejected) {
  const auto refusal = [](const std::vector<RowRange>& rows) -> std::string {
    CompileOptions options = rows_options("cpu");
    options.groups[0].rows = [=](const std::string&, const Shape&) { return rows; };
    try {
      several_steps(options);
    } catch (const UserError& error) {
      return error.message();
    }
    return "nothing was thrown";
  };
  const std::string begin = "group 'tall': expected ascending rows of 'tall' [6,2], got ";
  EXPECT_EQ(refusal({}), begin + "none");
  EXPECT_EQ(refusal({{4, 7}}), begin + "4 to 7");
  EXPECT_EQ(refusal({{3, 4}, {1, 2}}), begin + "3 to 4, 1 to 2");
  EXPECT_EQ(refusal({{2, 2}}), begin + "2 to 2");
}

void expect_muon(const std::string& kind) {
  const optim::Muon muon{.lr = 0.1, .weight_decay = 0.3, .adamw_lr_factor = 0.2};
  expect_params("muon", several_steps(several_options(muon, kind)).download_params(), 2e-5);
}
TEST(Muon, updates_matrices_by_muon_and_others_by_adamw_on_cpu) { expect_muon("cpu"); }
TEST(Muon, updates_matrices_by_muon_and_others_by_adamw_on_webgpu) { expect_muon("webgpu"); }

void expect_accumulation(const std::string& kind) {
  CompileOptions options = several_options(optim::AdamW{.lr = 0.1, .weight_decay = 0.3}, kind);
  options.accumulate = 3;
  options.clip_grad_norm = 1.5;
  auto trainer = several_steps(options);
  expect_params("accumulate", trainer.download_params());
  EXPECT_EQ(trainer.steps(), 12);
  EXPECT_EQ(trainer.updates(), 4);
}
TEST(Accumulation, matches_pytorch_on_cpu) { expect_accumulation("cpu"); }
TEST(Accumulation, matches_pytorch_on_webgpu) { expect_accumulation("webgpu"); }

void expect_averages(const std::string& kind) {
  CompileOptions options = several_options(optim::AdamW{.lr = 0.1, .weight_decay = 0.3}, kind);
  options.ema_decay = 0.9;
  auto trainer = several_steps(options);
  expect_params("ema", trainer.download_ema());
  auto read = trainer.attach(
      [](const Several& m, const Inputs&) {
        return std::map<std::string, Tensor>{
            {"wide", m.wide + 0.0}, {"bias", m.bias + 0.0}, {"tall", m.tall + 0.0}};
      },
      {.weights = WeightSource::kEma});
  expect_params("ema", read.run());
  expect_params("ema", read.download_params());
}
TEST(Averages, match_pytorch_on_cpu) { expect_averages("cpu"); }
TEST(Averages, match_pytorch_on_webgpu) { expect_averages("webgpu"); }

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

TEST(Schedule, rates_match_pytorch_and_text_round_trips) {
  expect_rates("constant", 0.5);
  expect_rates("linear", Schedule::linear(0.5, 0.05, 30));
  expect_rates("cosine", Schedule::cosine(0.5, 0.05, 39));
  expect_rates("step", Schedule::step(0.5, 7, 0.5));
  expect_rates("multi_step", Schedule::multi_step(0.5, {3, 10, 10, 25}, 0.5));
  expect_rates("warmup_constant", Schedule::warmup(5, 0.5));
  expect_rates("warmup_cosine", Schedule::warmup(10, Schedule::cosine(0.5, 0, 30)));
  expect_rates("one_cycle", Schedule::one_cycle({.peak = 0.5, .steps = 40}));
  expect_rates("one_cycle_linear", Schedule::one_cycle({.peak = 0.5,
                                                        .steps = 40,
                                                        .pct_start = 0.45,
                                                        .linear = true,
                                                        .div_factor = 10,
                                                        .final_div_factor = 100}));
  expect_rates(
      "one_cycle_three_phase",
      Schedule::one_cycle({.peak = 0.5, .steps = 40, .pct_start = 0.33, .three_phase = true}));
  expect_rates("cosine_restarts", Schedule::cosine_restarts(0.5, 0.05, 6));
  expect_rates("cosine_restarts_twice", Schedule::cosine_restarts(0.5, 0, 5, 2));
  expect_rates("exponential", Schedule::exponential(0.5, 0.9));
  expect_rates("polynomial", Schedule::polynomial(0.5, 0, 30, 2.5));
  expect_rates("inverse_sqrt", Schedule::inverse_sqrt(0.5, 10));
  expect_rates("sequence",
               Schedule::sequence(
                   {0.25, Schedule::exponential(0.5, 0.9), Schedule::cosine(0.5, 0, 25)}, {4, 15}));
}

// Steps counted from 1: the first step is one away from the start, and milestone m is the m-th
// step.
TEST(Schedule, shifted_by_one_counts_steps_from_one) {
  const Schedule linear = Schedule::shift(1, Schedule::linear(1, 0, 4));
  EXPECT_DOUBLE_EQ(linear.at(0), 0.75);
  EXPECT_DOUBLE_EQ(linear.at(3), 0);
  const Schedule milestones = Schedule::shift(1, Schedule::multi_step(1, {3}, 0.5));
  EXPECT_DOUBLE_EQ(milestones.at(1), 1);
  EXPECT_DOUBLE_EQ(milestones.at(2), 0.5);
  EXPECT_EQ(Schedule::parse(linear.text()).at(2), linear.at(2));
}

TEST(Schedule, cosine_restarts_far_away_do_not_overflow) {
  const Schedule tenfold = Schedule::cosine_restarts(1, 0, 1, 1000000000);
  EXPECT_GE(tenfold.at(std::int64_t{1} << 61), 0);
  EXPECT_EQ(Schedule::cosine_restarts(1, 0, 3).at(3000000000LL), 1);
}

TEST(ParamFilter, matches_whole_names) {
  const auto picks = [](const char* pattern, const char* name) {
    return ParamFilter(pattern)(name, {1});
  };
  EXPECT_TRUE(picks("*.bias", "blocks.0.fc.bias"));
  EXPECT_TRUE(picks("blocks.?.*.weight", "blocks.0.fc.weight"));
  EXPECT_TRUE(picks("*a*b", "aab.ab"));
  EXPECT_TRUE(picks("*", ""));
  EXPECT_FALSE(picks("*.bias", "bias"));
  EXPECT_FALSE(picks("bias", "fc.bias"));
  EXPECT_FALSE(picks("*a*b", "aabc"));
  EXPECT_FALSE(picks("w?", "w"));
  EXPECT_FALSE(ParamFilter()("w", {1}));
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

TEST(Schedule, malformed_text_is_rejected) {
  for (const char* text : {"",
                           "x",
                           "0",
                           "0 0x1p-1",
                           "0 0x1p-1 0x0p+0 0",
                           "7 0 0 1 0",
                           "-1 0 0 1 0",
                           "1 1 0 0 0",
                           "1 1 0 -3 0",
                           "6 1 2 0 2 5 2 0 0 0",
                           "6 1 2 0 0.5 5 1 0 0",
                           "7 1 0 0 0 5 1 0 0",
                           "7 1 0 0 0 5 0 0",
                           "11 0 0 0 0 0 1 4 1 0 1 0 0 0",
                           "11 0 0 0 0 0 1 0 2 0 1 0 0 0 0 1 0 0 0",
                           "12 0 0 0 0 -1 0 1 0 1 0 0 0",
                           "13 0 0 0 0 1 0 0",
                           "8 1 1 0 0 0 0 -1",
                           "3 0 0 5 0",
                           "3 0 0 5 0 9",
                           "5 1 0 0 3 1 2",
                           "5 1 0 0 999999999999 1",
                           "5 1 0 0 2 5 3",
                           "0 half 0 0 0",
                           "0 nan 0 0 0",
                           "0 1 0 0 0 junk"}) {
    EXPECT_THROW(Schedule::parse(text), IoError) << "'" << text << "'";
  }
}

TEST(Schedule, deeply_nested_text_is_rejected) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "3 0 0 1 0 ";
  EXPECT_THROW(Schedule::parse(text + "0 1 0 0 0"), IoError);
}

// The scalar `weight_decay` can be set between steps.
TEST(Optimizer, weight_decay_is_a_scalar_that_can_be_set) {
  auto trainer = descending({.optimizer = optim::SGD{.lr = 0.5, .weight_decay = 1}});
  trainer.upload_params({{"w", HostTensor::from({kSize}, std::vector<float>(kSize, 1))}});
  const std::vector<float> none(kSize, 0);
  trainer.step({{"g", none}});
  EXPECT_EQ(trainer.download_params().at("w").floats()[0], 0.5F);
  trainer.set("weight_decay", 0);
  trainer.step({{"g", none}});
  EXPECT_EQ(trainer.download_params().at("w").floats()[0], 0.5F);
}

// As in PyTorch: 0 / 0 where all gradients are 0, the usual step elsewhere.
TEST(Optimizer, eps_of_zero_is_nan_only_for_gradients_of_zero) {
  const Optimizer optimizers[] = {
      optim::Adam{.lr = 0.5, .eps = 0}, optim::AdamW{.lr = 0.5, .eps = 0, .weight_decay = 0},
      optim::NAdam{.lr = 0.5, .eps = 0}, optim::RMSprop{.lr = 0.5, .eps = 0},
      optim::Adagrad{.lr = 0.5, .eps = 0}};
  std::vector<float> grads(kSize, 2);
  grads[3] = 0;
  for (const Optimizer& optimizer : optimizers) {
    auto trainer = descending({.optimizer = optimizer});
    const auto before = trainer.download_params().at("w").floats();
    trainer.step({{"g", grads}});
    const auto after = trainer.download_params().at("w").floats();
    EXPECT_TRUE(std::isnan(after[3]));
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (i != 3) {
        EXPECT_LT(after[i], before[i] - 0.4F) << i;
      }
    }
  }
}

// Decoupled decay follows the rate of the step, also after set_lr().
TEST(Optimizer, setting_the_rate_changes_the_decay) {
  auto trainer = descending({.optimizer = optim::AdamW{.lr = 0.5, .weight_decay = 1}});
  trainer.upload_params({{"w", HostTensor::from({kSize}, std::vector<float>(kSize, 1))}});
  const std::vector<float> none(kSize, 0);
  trainer.step({{"g", none}});
  EXPECT_EQ(trainer.download_params().at("w").floats()[0], 0.5F);
  trainer.set_lr(0.25);
  trainer.step({{"g", none}});
  EXPECT_EQ(trainer.download_params().at("w").floats()[0], 0.375F);
}

}  // namespace
}  // namespace tensorgrad::testing
