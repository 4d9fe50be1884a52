// SPDX-License-Identifier: MIT
// Several objectives in one trainer: each behaves as a standalone trainer whose parameters are
// copied by hand, and what they share exists once.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

constexpr std::uint32_t kSecondSeed = 0x9e3779b9U;  // added to the seed of the first objective

struct ThreeHeads {
  nn::Linear trunk{3, 16}, a{16, 2}, b{16, 2}, c{16, 2};
  Parameter unused{{5}};
  TG_MODULE(trunk, a, b, c, unused)
};

using Head = nn::Linear ThreeHeads::*;

// Returns the loss of one head over the trunk, with dropout.
auto loss_of(Head head) {
  return [head](const ThreeHeads& net, const Inputs& in) {
    const Tensor hidden = capture("hidden", tanh(net.trunk(dropout(in["x"], 0.2))));
    return mse((net.*head)(hidden), in["y"]) * scalar("weight", 1.0);
  };
}

ParamFilter begins_with(std::vector<std::string> begins) {
  return [begins = std::move(begins)](const std::string& name, const Shape&) {
    return std::any_of(begins.begin(), begins.end(),
                       [&](const std::string& each) { return name.starts_with(each); });
  };
}

struct Part {
  std::string name;
  Head head;
  std::vector<std::string> trains;
  Optimizer optimizer;
  double clip = 0;
};

CompileOptions options_of_part(const Part& part) {
  return {.dataset = {{"x", {22, 3}}, {"y", {22, 2}}},
          .batch = 4,
          .optimizer = part.optimizer,
          .clip_grad_norm = part.clip};
}

MultiTrainer<ThreeHeads> together(const std::vector<Part>& parts, const DeviceOptions& device,
                                  std::uint32_t seed = 5) {
  std::vector<ObjectiveSpec<ThreeHeads>> objectives;
  for (const Part& part : parts) {
    objectives.push_back({.name = part.name,
                          .loss = loss_of(part.head),
                          .params = begins_with(part.trains),
                          .options = options_of_part(part)});
  }
  auto trainer = compile(ThreeHeads{}, objectives, {.seed = seed, .device = device});
  give_data(trainer);
  return trainer;
}

// Returns a standalone trainer of the objective, in which all other parameters are frozen.
Trainer<ThreeHeads> alone(const Part& part, std::uint32_t seed, const DeviceOptions& device) {
  CompileOptions options = options_of_part(part);
  const ParamFilter own = begins_with(part.trains);
  options.groups = {
      {.params = [own](const std::string& name, const Shape& shape) { return !own(name, shape); },
       .freeze = true}};
  options.seed = seed;
  options.device = device;
  auto trainer = compile(ThreeHeads{}, loss_of(part.head), options);
  give_data(trainer);
  return trainer;
}

DeviceOptions device(const std::string& kind) {
  return {.kind = kind, .threads = 2, .allow_software = true};
}

// Steps the objectives alternately, one or several steps at a time. Copies the parameters from each
// standalone trainer to the next.
void expect_as_alone(const std::vector<Part>& parts, const std::string& kind) {
  auto trainer = together(parts, device(kind));
  std::vector<Trainer<ThreeHeads>> singles;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    singles.push_back(
        alone(parts[k], 5 + static_cast<std::uint32_t>(k) * kSecondSeed, device(kind)));
  }
  auto params = trainer.download_params();
  const std::vector<std::byte> untouched = params.at("unused").bytes;
  for (int round = 0; round < 4; ++round) {
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const int count = 1 + (round + static_cast<int>(k)) % 3;
      singles[k].upload_params(params);
      const std::vector<float> want = singles[k].run(count);
      params = singles[k].download_params();
      EXPECT_EQ(trainer[parts[k].name].run(count), want) << parts[k].name << " round " << round;
      EXPECT_EQ(bits_of(trainer.download_params()), bits_of(params)) << parts[k].name;
      EXPECT_EQ(bits_of(trainer[parts[k].name].download_grads()),
                bits_of(singles[k].download_grads()))
          << parts[k].name;
      EXPECT_EQ(trainer[parts[k].name].steps(), singles[k].steps());
      EXPECT_EQ(trainer[parts[k].name].epoch(), singles[k].epoch());
      EXPECT_EQ(trainer[parts[k].name].lr(), singles[k].lr());
    }
  }
  EXPECT_EQ(trainer.download_params().at("unused").bytes, untouched);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const Bits states = bits_of(trainer.download_optimizer());
    for (const auto& [name, bytes] : bits_of(singles[k].download_optimizer()))
      EXPECT_EQ(states.at(parts[k].name + "." + name), bytes) << parts[k].name << " " << name;
  }
}

const Optimizer kAdam = optim::AdamW{.lr = Schedule::cosine(0.02, 0.001, 12)};
const Optimizer kSgd = optim::SGD{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1};
const Optimizer kLion = optim::Lion{.lr = 0.003, .weight_decay = 0.1};

std::vector<Part> disjoint() {
  return {{"one", &ThreeHeads::a, {"trunk", "a"}, kAdam, 0.25},
          {"two", &ThreeHeads::b, {"b"}, kSgd, 0.5}};
}
std::vector<Part> overlapping() {
  return {{"one", &ThreeHeads::a, {"trunk", "a"}, kAdam, 0.25},
          {"two", &ThreeHeads::b, {"trunk", "b"}, kSgd, 0.5}};
}
// The arena cannot place three heads next to the trunk, so another head lies between the parameters
// of at least one objective.
std::vector<Part> with_a_gap() {
  return {{"one", &ThreeHeads::a, {"trunk", "a"}, kAdam},
          {"two", &ThreeHeads::b, {"trunk", "b"}, kSgd},
          {"three", &ThreeHeads::c, {"trunk", "c"}, kLion}};
}
std::vector<Part> with_a_gap_and_muon() {
  std::vector<Part> parts = with_a_gap();
  parts[2].optimizer = optim::Muon{.weight_decay = 0.1};
  return parts;
}

TEST(Objectives, with_separate_parameters_match_two_trainers_on_cpu) {
  expect_as_alone(disjoint(), "cpu");
}
TEST(Objectives, with_separate_parameters_match_two_trainers_on_webgpu) {
  expect_as_alone(disjoint(), "webgpu");
}
// A norm is summed in arena order, which differs from that of a standalone trainer here.
std::vector<Part> overlapping_without_norms() {
  std::vector<Part> parts = overlapping();
  for (Part& part : parts) part.clip = 0;
  return parts;
}
TEST(Objectives, with_common_parameters_match_two_trainers_on_cpu) {
  expect_as_alone(overlapping_without_norms(), "cpu");
}
TEST(Objectives, with_common_parameters_match_two_trainers_on_webgpu) {
  expect_as_alone(overlapping_without_norms(), "webgpu");
}
TEST(Objectives, do_not_change_parameters_in_between_on_cpu) {
  expect_as_alone(with_a_gap(), "cpu");
  expect_as_alone(with_a_gap_and_muon(), "cpu");
}
TEST(Objectives, do_not_change_parameters_in_between_on_webgpu) {
  expect_as_alone(with_a_gap(), "webgpu");
}

// Two objectives with every option that adds saved state.
MultiTrainer<ThreeHeads> full(const DeviceOptions& where, std::uint32_t seed = 5) {
  const auto counting = [](const ThreeHeads& net, const Inputs& in) {
    const Tensor count = state("count", {}, 3);
    set_state("count", count + 1.0);
    return loss_of(&ThreeHeads::a)(net, in) + count * 0.0;
  };
  const auto also_counting = [](const ThreeHeads& net, const Inputs& in) {
    const Tensor count = state("count", {}, 3);
    set_state("count", count + 1.0);
    return loss_of(&ThreeHeads::b)(net, in) + count * 0.0;
  };
  CompileOptions one = options_of_part(overlapping()[0]), two = options_of_part(overlapping()[1]);
  one.groups = {{.params = "trunk.bias", .freeze = true}, {.params = "a.bias", .lr_factor = 3}};
  one.accumulate = 3;
  one.normalize_grads = "*.weight";
  two.clip_grad_value = 0.1;
  two.skip_nonfinite = true;
  two.ema_decay = 0.75;
  two.groups = {no_weight_decay()};
  auto trainer = compile(
      ThreeHeads{},
      {{.name = "one", .loss = counting, .params = begins_with({"trunk", "a"}), .options = one},
       {.name = "two",
        .loss = also_counting,
        .params = begins_with({"trunk", "b"}),
        .options = two}},
      {.seed = seed, .device = where});
  give_data(trainer);
  return trainer;
}

std::vector<float> some_steps(AnyMultiTrainer& trainer, int rounds) {
  std::vector<float> losses;
  for (int i = 0; i < rounds; ++i) {
    losses.push_back(trainer["one"].step().loss);
    for (const float loss : trainer["two"].run(i % 3)) losses.push_back(loss);
    losses.push_back(trainer["one"].step().loss);
  }
  return losses;
}

void expect_resumed(const std::string& kind) {
  const std::string path = temporary("objectives.safetensors");
  auto whole = full(device(kind));
  whole["one"].set("lr_factor.a.bias", 2);
  whole["two"].set("weight", 0.5);
  some_steps(whole, 5);  // in the middle of an accumulation, and of both epochs
  whole["two"].set_lr(Schedule::linear(0.1, 0, 9));
  whole.save(path);
  const std::vector<float> want = some_steps(whole, 4);
  auto resumed = full(device(kind), 99);
  some_steps(resumed, 2);
  resumed.load(path);
  EXPECT_EQ(resumed["one"].steps(), 10);
  EXPECT_EQ(resumed["one"].updates(), 3);
  EXPECT_EQ(resumed["two"].steps(), 4);
  EXPECT_EQ(resumed["two"].scalars(),
            (std::map<std::string, double>{{"clip_grad_norm", 0.5},
                                           {"clip_grad_value", 0.1},
                                           {"weight", 0.5},
                                           {"weight_decay", 0.1},
                                           {"weight_decay.no_weight_decay", 0}}));
  EXPECT_EQ(some_steps(resumed, 4), want);
  EXPECT_EQ(everything(resumed), everything(whole));
  EXPECT_EQ(bits_of(resumed.download_ema()), bits_of(whole.download_ema()));
  EXPECT_EQ(resumed["two"].lr(), whole["two"].lr());
  auto count =
      resumed.attach([](const ThreeHeads&, const Inputs&) { return state("count", {}, 3); }, {});
  EXPECT_EQ(count().floats(), std::vector<float>{3 + 18 + 7});

  CompiledFunction averaged = compile_function(
      ThreeHeads{},
      [](const ThreeHeads& net, const Inputs& in) { return net.b(tanh(net.trunk(in["x"]))); },
      {.inputs = {{"x", {2, 3}}}, .device = {.kind = "cpu"}});
  resumed.save(path);
  averaged.load_params(path, WeightSource::kEma);
  EXPECT_EQ(bits_of(averaged.download_params()), bits_of(resumed.download_ema()));
  std::filesystem::remove(path);
}

TEST(Objectives, resume_bit_for_bit_from_a_checkpoint_on_cpu) { expect_resumed("cpu"); }
TEST(Objectives, resume_bit_for_bit_from_a_checkpoint_on_webgpu) { expect_resumed("webgpu"); }

TEST(Objectives, restart_after_a_reset) {
  auto trainer = full(device("cpu"));
  const Bits initial = everything(trainer);
  const std::vector<float> first = some_steps(trainer, 4);
  trainer.reset({.params = false});
  EXPECT_EQ(trainer["one"].steps() + trainer["two"].steps(), 0);
  EXPECT_NE(everything(trainer), initial);
  EXPECT_EQ(bits_of(trainer.download_ema()), bits_of(trainer.download_params()));
  trainer.reset();
  EXPECT_EQ(everything(trainer), initial);
  EXPECT_EQ(some_steps(trainer, 4), first);
}

TEST(Objectives, share_what_attached_functions_read) {
  auto trainer = full(device("cpu"));
  const auto output = [](const ThreeHeads& net, const Inputs& in) {
    return net.b(net.trunk(in["x"]));
  };
  CompiledFunction forward = trainer.attach(output, {.inputs = {{"x", {2, 3}}}});
  CompiledFunction averaged =
      trainer.attach(output, {.inputs = {{"x", {2, 3}}}, .weights = WeightSource::kEma});
  CompiledFunction lone = compile_function(ThreeHeads{}, output,
                                           {.inputs = {{"x", {2, 3}}}, .device = {.kind = "cpu"}});
  const std::vector<float> x = numbers(6, 9);
  for (const char* name : {"one", "two"}) {
    trainer[name].run(3);
    lone.upload_params(trainer.download_params());
    EXPECT_EQ(forward({{"x", x}}).floats(), lone({{"x", x}}).floats()) << name;
    lone.upload_params(trainer.download_ema());
    EXPECT_EQ(averaged({{"x", x}}).floats(), lone({{"x", x}}).floats()) << name;
  }
}

TEST(Objectives, have_separate_captures_rates_and_losses) {
  auto trainer = together(overlapping(), device("cpu"));
  EXPECT_EQ(trainer.objectives(), (std::vector<std::string>{"one", "two"}));
  Objective one = trainer["one"], two = trainer["two"];
  one.submit(3);
  two.submit(2);
  one.submit(1);
  EXPECT_EQ(two.losses().size(), 2U);
  EXPECT_EQ(one.losses().size(), 4U);
  EXPECT_EQ(one.captures(), std::vector<std::string>{"hidden"});
  const StepResult step = two.step({}, {.captures = {"hidden"}});
  EXPECT_EQ(step.captures.at("hidden").shape, (Shape{4, 16}));
  EXPECT_EQ(step.step, 3);
  two.set_lr(0.0);
  const Bits before = bits_of(trainer.download_params());
  two.run(2);
  EXPECT_EQ(bits_of(trainer.download_params()), before);
  EXPECT_GT(one.lr(), 0);
  EXPECT_GT(one.grad_norm(), 0);
  EXPECT_FALSE(one.profile().launches.empty());
  EXPECT_EQ(one.steps(), 5);
  const StepOutcome bad = one.try_step({}, {.captures = {"unknown"}});
  EXPECT_EQ(bad.status, StepOutcome::Status::kFailed);
  EXPECT_NE(bad.error.find("hidden"), std::string::npos) << bad.error;
}

// Random numbers and the order of the data differ between objectives with equal steps, losses and
// data.
TEST(Objectives, draw_separate_random_numbers) {
  std::vector<Part> parts = disjoint();
  parts[0].head = parts[1].head;
  parts[0].trains = parts[1].trains;
  parts[0].optimizer = parts[1].optimizer = optim::SGD{.lr = 0};
  auto trainer = together(parts, device("cpu"));
  EXPECT_NE(trainer["one"].run(5), trainer["two"].run(5));
}

TEST(Objectives, continue_with_a_replaced_model) {
  auto trainer = full(device("cpu"));
  some_steps(trainer, 3);
  trainer["two"].set("weight", 0.25);
  const Bits trained = bits_of(trainer.download_params());
  trainer.replace_model(ThreeHeads{}, true);
  EXPECT_EQ(bits_of(trainer.download_params()), trained);
  EXPECT_EQ(trainer["one"].steps(), 0);
  EXPECT_EQ(trainer["two"].scalars().at("weight"), 0.25);
  give_data(trainer);
  EXPECT_EQ(trainer["two"].run(3).size(), 3U);
}

TEST(Objectives, accept_states_of_one_optimizer) {
  auto trainer = full(device("cpu"));
  some_steps(trainer, 3);
  auto states = trainer.download_optimizer();
  EXPECT_TRUE(states.contains("one.exp_avg/trunk.weight"));
  EXPECT_TRUE(states.contains("two.momentum_buffer/trunk.weight"));
  EXPECT_FALSE(states.contains("one.exp_avg/b.weight"));
  EXPECT_FALSE(states.contains("one.exp_avg/trunk.bias")) << "it is frozen there";
  HostTensor moment = states.at("one.exp_avg/a.bias");
  std::fill(moment.bytes.begin(), moment.bytes.end(), std::byte{0});
  trainer.upload_optimizer({{"one.exp_avg/a.bias", moment}}, {.partial = true});
  states["one.exp_avg/a.bias"] = moment;
  EXPECT_EQ(bits_of(trainer.download_optimizer()), bits_of(states));
}

TEST(Objectives, with_one_named_objective_match_a_trainer) {
  const std::vector<Part> parts = {disjoint()[1]};
  auto trainer = together(parts, device("cpu"));
  auto lone = alone(parts[0], 5, device("cpu"));
  lone.upload_params(trainer.download_params());
  EXPECT_EQ(trainer["two"].run(4), lone.run(4));
  EXPECT_EQ(trainer["two"].steps(), 4);
}

// Parameters, model states and data exist once. Objectives never run at the same time, so each slot
// is as large as the largest of its rank.
TEST(Objectives, need_less_memory_than_separate_trainers) {
  std::vector<ObjectiveSpec<ThreeHeads>> objectives;
  for (const Part& part : overlapping()) {
    objectives.push_back({.name = part.name,
                          .loss = loss_of(part.head),
                          .params = begins_with(part.trains),
                          .options = options_of_part(part)});
  }
  auto both = trace(ThreeHeads{}, objectives);
  const std::int64_t peak = both.report().peak_bytes;
  const std::int64_t one = both["one"].report().peak_bytes, two = both["two"].report().peak_bytes;
  const std::int64_t params = 4 * 64 * (1 + 1 + 3 * 2 + 1);  // sizes 48, 16, 3 * (32, 2), 5
  const std::int64_t data = 512 + 256;                       // 22 rows of 3 and of 2
  EXPECT_GT(peak, std::max(one, two));
  EXPECT_LT(peak, one + two - params - data) << "slots are not shared";
  EXPECT_EQ(both.report().launches, both["one"].report().launches + both["two"].report().launches);
  EXPECT_NE(both.explain().find("objective two\n"), std::string::npos);
  EXPECT_NO_THROW(trace(ThreeHeads{}, objectives, {.memory_budget = peak}));
  EXPECT_THROW(trace(ThreeHeads{}, objectives, {.memory_budget = peak - 1}), UserError);
}

}  // namespace
}  // namespace tensorgrad::testing
