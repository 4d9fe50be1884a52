// SPDX-License-Identifier: MIT
// Options of a trainer: captures, resets, uploads by name, accumulation, averages, skipped steps,
// abort, replaced models.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <thread>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

struct CountingNet {
  explicit CountingNet(std::int64_t width = 8) : first(3, width), second(width, 2) {}
  nn::Linear first, second;
  TG_MODULE(first, second)
};

Tensor counting_loss(const CountingNet& net, const Inputs& in) {
  const Tensor hidden = capture("hidden", tanh(net.first(dropout(in["x"], 0.2))));
  const Tensor count = state("count", {});
  set_state("count", count + 1.0);
  return mse(net.second(hidden), in["y"]);
}

CompileOptions data_options(const std::string& kind = "cpu") {
  return {.dataset = {{"x", {22, 3}}, {"y", {22, 2}}},
          .batch = 4,
          .optimizer = optim::AdamW{.lr = Schedule::cosine(0.02, 0.001, 30)},
          .seed = 5,
          .device = {.kind = kind, .threads = 2, .allow_software = true}};
}

Trainer<CountingNet> data_trainer(const CompileOptions& options = data_options()) {
  auto trainer = compile(CountingNet{}, counting_loss, options);
  give_data(trainer);
  return trainer;
}

void all_at_once(CompileOptions& o) {
  o.groups = {{.params = "second.weight", .lr = Schedule::linear(0.1, 0, 5)},
              {.params = "first.bias", .freeze = true},
              no_weight_decay()};
  o.accumulate = 3;
  o.ema_decay = 0.75;
  o.skip_nonfinite = true;
  o.normalize_grads = "*.weight";
  o.clip_grad_value = 0.5;
  o.clip_grad_norm = 0.25;
}

struct Everything {
  const char* name;
  std::function<void(CompileOptions&)> change;
};
class Resumed : public ::testing::TestWithParam<Everything> {};

// Saves after 7 steps, in the middle of an accumulation, to a file and to memory. New trainers that
// load it compute the same bits.
TEST_P(Resumed, continues_bit_for_bit) {
  CompileOptions options = data_options();
  GetParam().change(options);
  const std::string path = temporary("options.safetensors");
  auto whole = data_trainer(options);
  whole.run(7);
  whole.save(path);
  const std::vector<std::byte> bytes = whole.save_bytes();
  EXPECT_EQ(bytes, read_file(path));
  const std::vector<float> rest = whole.run(8);
  options.seed = 99;
  for (const FileSource& checkpoint : {FileSource(path), FileSource(bytes)}) {
    auto resumed = data_trainer(options);
    resumed.run(2);
    resumed.load(checkpoint);
    EXPECT_EQ(resumed.steps(), 7);
    std::vector<float> again;
    for (int i = 0; i < 8; ++i) again.push_back(resumed.step().loss);
    EXPECT_EQ(again, rest);
    EXPECT_EQ(everything(resumed), everything(whole));
    EXPECT_EQ(resumed.scalars(), whole.scalars());
  }
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(
    Trainer, Resumed,
    ::testing::Values(
        Everything{"adamw", [](CompileOptions&) {}},
        Everything{
            "sgd_dampened",
            [](CompileOptions& o) { o.optimizer = optim::SGD{.momentum = 0.9, .dampening = 0.5}; }},
        Everything{"nadam", [](CompileOptions& o) { o.optimizer = optim::NAdam{}; }},
        Everything{"radam", [](CompileOptions& o) { o.optimizer = optim::RAdam{.beta2 = 0.5}; }},
        Everything{"rmsprop",
                   [](CompileOptions& o) {
                     o.optimizer = optim::RMSprop{.momentum = 0.9, .centered = true};
                   }},
        Everything{"adagrad", [](CompileOptions& o) { o.optimizer = optim::Adagrad{}; }},
        Everything{"adadelta", [](CompileOptions& o) { o.optimizer = optim::Adadelta{}; }},
        Everything{"lion", [](CompileOptions& o) { o.optimizer = optim::Lion{}; }},
        Everything{"muon", [](CompileOptions& o) { o.optimizer = optim::Muon{}; }},
        Everything{"amsgrad",
                   [](CompileOptions& o) { o.optimizer = optim::Adam{.amsgrad = true}; }},
        Everything{"sequence",
                   [](CompileOptions& o) {
                     o.optimizer = optim::SGD{
                         .lr = Schedule::sequence({0.1, Schedule::exponential(0.1, 0.5)}, {9})};
                   }},
        Everything{"all_at_once", all_at_once}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Trainer, all_options_together_match_between_webgpu_and_cpu) {
  CompileOptions cpu = data_options(), gpu = data_options("webgpu");
  all_at_once(cpu);
  all_at_once(gpu);
  auto a = data_trainer(cpu), b = data_trainer(gpu);
  a.run(8);
  b.run(8);
  auto want = a.download_optimizer(), got = b.download_optimizer();
  want.merge(a.download_params());
  got.merge(b.download_params());
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    const std::vector<float> x = tensor.floats(), y = got.at(name).floats();
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-5) << name;
  }
  EXPECT_NEAR(a.grad_norm(), b.grad_norm(), 1e-5);
}

TEST(Accumulation, run_matches_step_and_updates_at_the_end) {
  CompileOptions options = data_options();
  options.accumulate = 4;
  auto a = data_trainer(options), b = data_trainer(options);
  const Bits begin = bits_of(a.download_params());
  EXPECT_EQ(a.lr(), 0.02);
  std::vector<float> losses;
  for (int i = 0; i < 3; ++i) losses.push_back(a.step().loss);
  EXPECT_EQ(bits_of(a.download_params()), begin);
  EXPECT_EQ(a.updates(), 0);
  EXPECT_EQ(a.lr(), 0.02);
  for (int i = 0; i < 7; ++i) losses.push_back(a.step().loss);
  EXPECT_NE(bits_of(a.download_params()), begin);
  EXPECT_EQ(a.updates(), 2);
  EXPECT_EQ(a.lr(), Schedule::cosine(0.02, 0.001, 30).at(2));
  EXPECT_EQ(b.run(10), losses);
  EXPECT_EQ(everything(b), everything(a));
}

struct Vector {
  Parameter w{{4}, init::ones()}, bias{{2}, init::ones()};
  TG_MODULE(w, bias)
};

// Both gradients equal the input.
Trainer<Vector> vector_trainer(CompileOptions options, const std::string& kind = "cpu") {
  options.inputs = {{"g", {}}};
  options.device = {.kind = kind, .allow_software = true};
  return compile(
      Vector{},
      [](const Vector& m, const Inputs& in) {
        return (sum(m.w) + sum(m.bias)) * in["g"] + sum(square(m.w)) * 0;
      },
      options);
}
float element(const std::map<std::string, HostTensor>& tensors, const std::string& name) {
  return tensors.at(name).floats().at(0);
}

void expect_skip(const std::string& kind) {
  auto trainer = vector_trainer(
      {.optimizer = optim::SGD{.lr = 0.5, .momentum = 0.5}, .skip_nonfinite = true}, kind);
  const std::vector<float> one{1}, infinite{std::numeric_limits<float>::infinity()};
  trainer.step({{"g", one}});
  EXPECT_FLOAT_EQ(static_cast<float>(trainer.grad_norm()), std::sqrt(6.0F));
  const Bits before = everything(trainer);
  trainer.step({{"g", infinite}});
  EXPECT_FALSE(std::isfinite(trainer.grad_norm()));
  EXPECT_EQ(everything(trainer), before);
  EXPECT_EQ(trainer.steps(), 2);
  trainer.step({{"g", one}});
  EXPECT_FLOAT_EQ(element(trainer.download_params(), "w"), 1 - 0.5F - 0.75F);
}

TEST(SkipNonfinite, changes_nothing_and_is_reported_on_cpu) { expect_skip("cpu"); }
TEST(SkipNonfinite, changes_nothing_and_is_reported_on_webgpu) { expect_skip("webgpu"); }

// Bad steps do not change the optimizer, the average, or the host's update count: the result is as
// if only the good steps ran.
void expect_skips_do_not_count(const CompileOptions& options, const std::string& kind) {
  CompileOptions skipping = options;
  skipping.skip_nonfinite = true;
  skipping.ema_decay = 0.5;
  auto late = vector_trainer(skipping, kind), direct = vector_trainer(skipping, kind);
  const std::vector<float> infinite{std::numeric_limits<float>::infinity()};
  for (int bad = 0; bad < 3; ++bad) {
    for (int i = 0; i < bad; ++i) late.step({{"g", infinite}});
    for (int i = 0; i < 4; ++i) {
      const std::vector<float> g{0.25F * static_cast<float>(i + 1)};
      EXPECT_EQ(late.step({{"g", g}}).loss, direct.step({{"g", g}}).loss);
    }
    EXPECT_EQ(everything(late), everything(direct)) << bad;
    EXPECT_EQ(bits_of(late.download_ema()), bits_of(direct.download_ema())) << bad;
  }
  EXPECT_EQ(late.skipped_updates(), 3);
  EXPECT_EQ(late.updates(), 15);
  EXPECT_EQ(direct.skipped_updates(), 0);
}
TEST(SkipNonfinite, does_not_count_for_the_optimizer_on_cpu) {
  expect_skips_do_not_count({.optimizer = optim::Adam{.lr = 0.1}}, "cpu");
  expect_skips_do_not_count({.optimizer = optim::SGD{.lr = 0.1, .momentum = 0.5, .dampening = 0.5}},
                            "cpu");
  expect_skips_do_not_count({.optimizer = optim::NAdam{.lr = 0.1}}, "cpu");
  expect_skips_do_not_count({.optimizer = optim::RAdam{.lr = 0.1, .beta2 = 0.5}}, "cpu");
}
TEST(SkipNonfinite, does_not_count_for_the_optimizer_on_webgpu) {
  expect_skips_do_not_count({.optimizer = optim::NAdam{.lr = 0.1}}, "webgpu");
}

TEST(SkipNonfinite, first_step_of_adam_after_skipped_ones_has_size_of_the_rate) {
  auto trainer = vector_trainer({.optimizer = optim::Adam{.lr = 0.1}, .skip_nonfinite = true});
  const std::vector<float> nan{std::numeric_limits<float>::quiet_NaN()}, one{1};
  for (int i = 0; i < 10; ++i) trainer.step({{"g", nan}});
  trainer.step({{"g", one}});
  EXPECT_FLOAT_EQ(element(trainer.download_params(), "w"), 0.9F);
}

// Schedules advance with every update, skipped or not, as in PyTorch.
TEST(SkipNonfinite, counts_for_the_schedule) {
  const Schedule halves = Schedule::exponential(1, 0.5);
  auto trainer = vector_trainer({.optimizer = optim::SGD{.lr = halves}, .skip_nonfinite = true});
  const std::vector<float> infinite{std::numeric_limits<float>::infinity()}, one{1};
  trainer.step({{"g", infinite}});
  trainer.step({{"g", one}});
  EXPECT_FLOAT_EQ(element(trainer.download_params(), "w"), 0.5F);
}

// Resuming restores the number of skipped updates. A file of an older version without the count
// resumes as if none was skipped.
TEST(SkipNonfinite, count_is_restored_from_a_checkpoint) {
  const CompileOptions options{.optimizer = optim::NAdam{.lr = 0.1}, .skip_nonfinite = true};
  const std::vector<float> infinite{std::numeric_limits<float>::infinity()}, one{1};
  auto whole = vector_trainer(options), resumed = vector_trainer(options);
  for (const auto& g : {one, infinite, one}) whole.step({{"g", g}});
  const std::vector<std::byte> saved = whole.save_bytes();
  whole.step({{"g", one}});
  resumed.load(FileSource(saved));
  resumed.step({{"g", one}});
  EXPECT_EQ(everything(resumed), everything(whole));
  EXPECT_EQ(resumed.skipped_updates(), 1);

  CompileOptions plain = options;
  plain.skip_nonfinite = false;
  auto before = vector_trainer(plain), after = vector_trainer(options);
  for (int i = 0; i < 3; ++i) before.step({{"g", one}});
  after.load(FileSource(before.save_bytes()));
  for (int i = 0; i < 2; ++i) {
    before.step({{"g", one}});
    after.step({{"g", one}});
  }
  EXPECT_EQ(everything(after), everything(before));
}

TEST(Groups, have_run_time_scalars_by_name) {
  auto trainer = vector_trainer(
      {.optimizer = optim::SGD{.lr = 0.5, .weight_decay = 0.5},
       .groups = {{.params = "bias", .name = "b", .lr_factor = 0.5, .weight_decay = 0.25}}});
  EXPECT_EQ(trainer.scalars(),
            (std::map<std::string, double>{
                {"lr_factor.b", 0.5}, {"weight_decay", 0.5}, {"weight_decay.b", 0.25}}));
  const std::vector<float> none{0};
  trainer.step({{"g", none}});
  EXPECT_FLOAT_EQ(element(trainer.download_params(), "w"), 0.75F);
  EXPECT_FLOAT_EQ(element(trainer.download_params(), "bias"), 1 - 0.25F * 0.25F);
  trainer.set("lr_factor.b", 0);
  trainer.set("weight_decay", 0);
  trainer.step({{"g", none}});
  EXPECT_FLOAT_EQ(element(trainer.download_params(), "w"), 0.75F);
  EXPECT_FLOAT_EQ(element(trainer.download_params(), "bias"), 1 - 0.25F * 0.25F);
}

TEST(Groups, first_match_applies_without_extra_launches) {
  CompileOptions plain{.optimizer = optim::AdamW{}};
  CompileOptions grouped{.optimizer = optim::AdamW{},
                         .groups = {{.params = "bias", .lr_factor = 0},
                                    {.params = "*", .lr = Schedule(0.25)},
                                    no_weight_decay()}};
  auto trainer = vector_trainer(grouped);
  EXPECT_EQ(trainer.report().launches, vector_trainer(plain).report().launches);
  const std::vector<float> one{1};
  trainer.step({{"g", one}});
  EXPECT_EQ(element(trainer.download_params(), "bias"), 1);
  EXPECT_NEAR(element(trainer.download_params(), "w"), 0.75 * (1 - 0.25 * 0.01 / 0.75), 1e-6);
}

TEST(Groups, that_are_frozen_have_no_backward_pass) {
  CompileOptions options = data_options("null");
  const auto all = compile(CountingNet{}, counting_loss, options).report();
  options.groups = {{.params = "first.*", .freeze = true}};
  const auto frozen = compile(CountingNet{}, counting_loss, options);
  EXPECT_LT(frozen.report().launches, all.launches);
  EXPECT_LT(frozen.report().peak_bytes, all.peak_bytes);
}

void expect_captures(const std::string& kind) {
  CompileOptions options = data_options(kind);
  auto a = data_trainer(options), b = data_trainer(options);
  EXPECT_EQ(a.captures(), std::vector<std::string>{"hidden"});
  for (int i = 0; i < 8; ++i) {
    StepOptions asked;
    if (i % 2 == 1) asked.captures = {"hidden"};
    const StepResult with = a.step({}, asked), without = b.step();
    EXPECT_NEAR(with.loss, without.loss, 1e-5);
    EXPECT_EQ(with.captures.size(), i % 2 == 1 ? 1U : 0U);
    if (i % 2 == 1) {
      EXPECT_EQ(with.captures.at("hidden").shape, (Shape{4, 8}));
      EXPECT_NE(with.captures.at("hidden").floats()[0], 0);
    }
  }
  for (const auto& [name, tensor] : a.download_params()) {
    const std::vector<float> got = tensor.floats(), want = b.download_params().at(name).floats();
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << name;
  }
  EXPECT_EQ(a.report().launches, b.report().launches);
}
TEST(Captures, return_values_of_the_step_without_side_effects_on_cpu) { expect_captures("cpu"); }
TEST(Captures, return_values_of_the_step_without_side_effects_on_webgpu) {
  expect_captures("webgpu");
}

TEST(Captures, of_a_parameter_return_its_value_before_the_step) {
  auto trainer = compile(Vector{},
                         [](const Vector& m, const Inputs&) {
                           capture("w", m.w);
                           return sum(m.w) + sum(m.bias);
                         },
                         {.optimizer = optim::SGD{.lr = 0.5}, .device = {.kind = "cpu"}});
  for (int i = 0; i < 3; ++i) {
    const float before = element(trainer.download_params(), "w");
    EXPECT_EQ(element(trainer.step({}, {.captures = {"w"}}).captures, "w"), before);
    EXPECT_EQ(element(trainer.download_params(), "w"), before - 0.5F);
  }
}

TEST(Captures, of_a_function_are_returned_with_its_outputs) {
  auto trainer = data_trainer();
  auto forward = trainer.attach(
      [](const CountingNet& net, const Inputs& in) {
        return net.second(capture("hidden", tanh(net.first(in["x"]))));
      },
      {.inputs = {{"x", {2, 3}}}});
  const std::vector<float> x = numbers(6, 3);
  EXPECT_EQ(forward.captures(), std::vector<std::string>{"hidden"});
  const NamedTensors plain = forward.run({{"x", x}});
  const NamedTensors both = forward.run({{"x", x}}, {.captures = {"hidden"}});
  EXPECT_EQ(plain.size(), 1U);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both.at("hidden").shape, (Shape{2, 8}));
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(both.at("output").floats()[static_cast<std::size_t>(i)],
                plain.at("output").floats()[static_cast<std::size_t>(i)], 1e-6);
  }
}

TEST(Trainer, uploads_some_parameters_and_states_by_name) {
  auto a = data_trainer(), b = data_trainer();
  a.run(3);
  const auto params = a.download_params(), states = a.download_optimizer();
  EXPECT_EQ(states.size(), 2 * params.size());
  b.run(2);
  const Bits before = everything(b);
  b.upload_params({{"first.bias", params.at("first.bias")}}, {.partial = true});
  b.upload_optimizer({{"exp_avg/first.bias", states.at("exp_avg/first.bias")}}, {.partial = true});
  Bits want = before;
  want["first.bias"] = params.at("first.bias").bytes;
  want["exp_avg/first.bias"] = states.at("exp_avg/first.bias").bytes;
  EXPECT_EQ(everything(b), want);
  b.upload_params(params);
  b.upload_optimizer(states);
  EXPECT_EQ(everything(b), everything(a));
}

TEST(Trainer, resets_parameters_or_the_optimizer_or_both) {
  CompileOptions options = data_options();
  options.ema_decay = 0.5;
  auto trainer = data_trainer(options);
  const Bits begin = everything(trainer);
  const std::vector<float> losses = trainer.run(6);
  const Bits params = bits_of(trainer.download_params());
  const Bits states = bits_of(trainer.download_optimizer());
  trainer.reset({.params = true, .optimizer = false});
  EXPECT_EQ(trainer.steps(), 6);
  EXPECT_NE(bits_of(trainer.download_params()), params);
  EXPECT_EQ(bits_of(trainer.download_optimizer()), states);
  trainer.reset({.params = false, .optimizer = true});
  EXPECT_EQ(trainer.steps(), 0);
  EXPECT_EQ(everything(trainer), begin);
  EXPECT_EQ(trainer.run(6), losses);
  trainer.reset();
  EXPECT_EQ(everything(trainer), begin);
}

TEST(Averages, start_equal_to_the_parameters) {
  CompileOptions options = data_options();
  options.ema_decay = 0.5;
  auto trainer = data_trainer(options);
  EXPECT_EQ(bits_of(trainer.download_ema()), bits_of(trainer.download_params()));
  auto given = trainer.download_params();
  given.at("first.bias").bytes.assign(given.at("first.bias").bytes.size(), std::byte{0});
  trainer.upload_params(given);
  EXPECT_EQ(bits_of(trainer.download_ema()), bits_of(given));
  trainer.run(1);
  EXPECT_EQ(bits_of(trainer.download_ema()), bits_of(trainer.download_params()));
  trainer.run(1);
  EXPECT_NE(bits_of(trainer.download_ema()), bits_of(trainer.download_params()));
}

TEST(Averages, are_read_beside_frozen_parameters) {
  CompileOptions options = data_options();
  options.ema_decay = 0.5;
  options.groups = {{.params = "first.*", .freeze = true}};
  auto trainer = data_trainer(options);
  trainer.run(5);
  auto averaged = trainer.attach(
      [](const CountingNet& net, const Inputs& in) { return net.second(net.first(in["x"])); },
      {.inputs = {{"x", {1, 3}}}, .weights = WeightSource::kEma});
  auto given = compile_function(
      CountingNet{},
      [](const CountingNet& net, const Inputs& in) { return net.second(net.first(in["x"])); },
      {.inputs = {{"x", {1, 3}}}, .device = {.kind = "cpu"}});
  given.upload_params(trainer.download_ema());
  const std::vector<float> x{0.5F, -0.25F, 1};
  EXPECT_EQ(averaged({{"x", x}}).floats(), given({{"x", x}}).floats());
  EXPECT_THROW(averaged.upload_params(trainer.download_ema()), UserError);
}

TEST(Averages, are_loaded_by_functions_without_a_trainer) {
  CompileOptions options = data_options();
  options.ema_decay = 0.5;
  options.groups = {{.params = "first.bias", .freeze = true}};
  auto trainer = data_trainer(options);
  trainer.run(5);
  const std::string path = temporary("ema.safetensors");
  trainer.save(path);
  auto forward = compile_function(
      CountingNet{},
      [](const CountingNet& net, const Inputs& in) { return net.second(net.first(in["x"])); },
      {.inputs = {{"x", {1, 3}}}, .device = {.kind = "cpu"}});
  forward.load_params(path, WeightSource::kEma);
  EXPECT_EQ(bits_of(forward.download_params()), bits_of(trainer.download_ema()));
  forward.load_params(path);
  EXPECT_EQ(bits_of(forward.download_params()), bits_of(trainer.download_params()));
  data_trainer().save(path);
  EXPECT_THROW(forward.load_params(path, WeightSource::kEma), UserError);
  std::filesystem::remove(path);
}

TEST(TryStep, reports_the_outcome) {
  auto trainer = vector_trainer({.optimizer = optim::SGD{}});
  const std::vector<float> one{1};
  const StepOutcome good = trainer.try_step({{"g", one}});
  EXPECT_TRUE(good.completed());
  EXPECT_EQ(good.result.step, 1);
  const StepOutcome bad = trainer.try_step({});
  EXPECT_EQ(bad.status, StepOutcome::Status::kFailed);
  EXPECT_NE(bad.error.find("input 'g'"), std::string::npos) << bad.error;
  EXPECT_EQ(trainer.steps(), 1);
}

TEST(Abort, ends_queued_calls) {
  auto trainer = data_trainer();
  std::atomic<bool> stop = false;
  std::atomic<int> aborted = 0;
  std::vector<std::thread> waiting;
  waiting.reserve(3);
  for (int i = 0; i < 3; ++i) {  // one has the turn, the others wait
    waiting.emplace_back([&] {
      while (!stop) aborted += trainer.try_step().status == StepOutcome::Status::kAborted ? 1 : 0;
    });
  }
  while (aborted < 2) trainer.abort();
  stop = true;
  for (std::thread& each : waiting) each.join();
  const auto steps = static_cast<int>(trainer.steps());
  auto same = data_trainer();
  same.run(steps);
  EXPECT_EQ(everything(trainer), everything(same));
}

TEST(Abort, ends_a_run_and_keeps_completed_steps) {
  auto trainer = data_trainer(), same = data_trainer();
  std::atomic<bool> aborted = false;
  std::thread runner([&] {
    try {
      trainer.run(1 << 30);
    } catch (const AbortedError&) {
      aborted = true;
    }
  });
  // The first abort() may come before run() begins.
  while (!aborted) {
    trainer.abort();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  runner.join();
  const auto steps = static_cast<int>(trainer.steps());
  EXPECT_LT(steps, 1 << 30);
  const std::vector<float> kept = trainer.losses(), want = same.run(steps);
  ASSERT_LE(kept.size(), want.size());
  EXPECT_EQ(kept,
            std::vector<float>(want.end() - static_cast<std::ptrdiff_t>(kept.size()), want.end()));
  EXPECT_EQ(everything(trainer), everything(same));
  EXPECT_TRUE(trainer.try_step().completed());
}

TEST(ReplaceModel, compiles_first_and_keeps_matching_values) {
  auto trainer = data_trainer();
  trainer.run(4);
  trainer.set_lr(0.125);
  const auto old = trainer.download_params();
  trainer.replace_model(CountingNet{6}, true);
  EXPECT_EQ(trainer.steps(), 0);
  EXPECT_EQ(trainer.lr(), 0.125);
  const auto now = trainer.download_params();
  EXPECT_EQ(now.at("first.weight").shape, (Shape{6, 3}));
  EXPECT_EQ(now.at("second.bias").bytes, old.at("second.bias").bytes);
  give_data(trainer);
  EXPECT_EQ(trainer.run(3).size(), 3U);
  const Bits before = everything(trainer);
  CountingNet broken;
  broken.second = nn::Linear(3, 2);
  EXPECT_THROW(trainer.replace_model(broken), ShapeError);
  EXPECT_EQ(everything(trainer), before);
  EXPECT_EQ(trainer.steps(), 3);
}

struct NormedNet {
  explicit NormedNet(std::int64_t width = 4) : first(3, width), norm(width), second(width, 2) {}
  nn::Linear first;
  nn::BatchNorm norm;
  nn::Linear second;
  TG_MODULE(first, norm, second)
};

Tensor normed_loss(const NormedNet& net, const Inputs& in) {
  const Tensor count = state("count", {}, 0, i32);
  set_state("count", count + 1);
  return mse(net.second(net.norm(net.first(in["x"]))), in["y"]);
}

Bits states_of(const TrainerBase& trainer) {
  const std::string path = temporary("states.safetensors");
  trainer.save(path);
  Bits states;
  for (const auto& [name, tensor] : read_safetensors(path).tensors) {
    if (name.starts_with("state/") && !name.starts_with("state/optim.")) states[name] = tensor.data;
  }
  std::filesystem::remove(path);
  return states;
}

void expect_states_kept(const std::string& kind) {
  auto trainer = compile(NormedNet{}, normed_loss, data_options(kind));
  const Bits initial = states_of(trainer);
  EXPECT_EQ(initial.size(), 3U);
  give_data(trainer);
  trainer.run(4);
  const Bits trained = states_of(trainer);
  for (const auto& [name, bytes] : trained) EXPECT_NE(bytes, initial.at(name)) << name;
  trainer.replace_model(NormedNet{}, true);
  EXPECT_EQ(states_of(trainer), trained);
  trainer.replace_model(NormedNet{6}, true);  // states of another shape are reset, `count` is kept
  const Bits wider = states_of(trainer);
  EXPECT_EQ(wider.at("state/norm.running_mean"), std::vector<std::byte>(6 * sizeof(float)));
  EXPECT_EQ(wider.at("state/count"), trained.at("state/count"));
  trainer.replace_model(NormedNet{});
  EXPECT_EQ(states_of(trainer), initial);
}
TEST(ReplaceModel, keeps_states_of_the_same_type) { expect_states_kept("cpu"); }
TEST(ReplaceModel, keeps_states_of_the_same_type_on_webgpu) { expect_states_kept("webgpu"); }

TEST(Trace, plans_without_a_device) {
  const auto traced = trace(CountingNet{}, counting_loss, data_options("webgpu"));
  EXPECT_GT(traced.report().launches, 0);
  EXPECT_GT(traced.report().peak_bytes, 0);
  EXPECT_NE(traced.explain().find("launch 0"), std::string::npos);
  EXPECT_EQ(traced.parameter_names().size(), 4U);
  EXPECT_EQ(traced.captures(), std::vector<std::string>{"hidden"});
}

// Options have the same effect as constants of the kernel and as scalars that change between
// steps.
void expect_adjustable(const char* kind, const Optimizer& constant, const Optimizer& changed,
                       const Optimizer& adjustable, const std::map<std::string, double>& numbers) {
  const std::string path = temporary("adjustable.safetensors");
  CompileOptions options = data_options(kind);
  const auto with = [&](const Optimizer& optimizer) {
    options.optimizer = optimizer;
    return data_trainer(options);
  };
  auto plain = with(constant), trainer = with(adjustable), other = with(changed);
  const std::vector<float> begin = plain.run(4), got = trainer.run(4);
  for (std::size_t i = 0; i < begin.size(); ++i) EXPECT_NEAR(got[i], begin[i], 1e-5) << kind;
  plain.save(path);
  other.load(path);
  for (const auto& [name, value] : numbers) trainer.set(name, value);
  const std::vector<float> want = other.run(6), after = trainer.run(6), without = plain.run(6);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(after[i], want[i], 2e-5) << kind;
  EXPECT_GT(std::abs(without.back() - want.back()), 1e-4) << kind << ": it makes no difference";
  std::filesystem::remove(path);
}

void expect_adjustable_betas(const char* kind) {
  expect_adjustable(
      kind, optim::Adam{.lr = 0.02}, optim::Adam{.lr = 0.02, .beta1 = 0.3, .beta2 = 0.9},
      optim::Adam{.lr = 0.02, .beta1 = optim::adjustable(0.9), .beta2 = optim::adjustable(0.999)},
      {{"beta1", 0.3}, {"beta2", 0.9}});
}
TEST(Adjustable, betas_of_adam) { expect_adjustable_betas("cpu"); }
TEST(Adjustable, betas_of_adam_on_webgpu) { expect_adjustable_betas("webgpu"); }

void expect_adjustable_momentum(const char* kind) {
  expect_adjustable(kind, optim::SGD{.lr = 0.05, .momentum = 1e-30},
                    optim::SGD{.lr = 0.05, .momentum = 0.9},
                    optim::SGD{.lr = 0.05, .momentum = optim::adjustable(0)}, {{"momentum", 0.9}});
}
TEST(Adjustable, momentum_of_sgd_can_start_at_zero) { expect_adjustable_momentum("cpu"); }
TEST(Adjustable, momentum_of_sgd_can_start_at_zero_on_webgpu) {
  expect_adjustable_momentum("webgpu");
}

}  // namespace
}  // namespace tensorgrad::testing
