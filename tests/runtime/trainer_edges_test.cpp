// SPDX-License-Identifier: MIT
// Interactions of a trainer's calls: uploads with queued steps, resets with learning rates,
// captures with types, random numbers of steps and functions, and lifetimes.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

struct Pair {
  Parameter a{{2}, init::ones()}, b{{2}, init::ones()};
  TG_MODULE(a, b)
};

const DeviceOptions kCpu{.kind = "cpu"};

// Each step multiplies the parameters by 1 - lr.
Tensor shrinking(const Pair& m, const Inputs&) { return sum(square(m.a) + square(m.b)) * 0.5; }

Trainer<Pair> shrinking_trainer(const Schedule& lr, const std::string& kind = "cpu") {
  return compile(
      Pair{}, shrinking,
      {.optimizer = optim::SGD{.lr = lr}, .device = {.kind = kind, .allow_software = true}});
}

std::vector<float> values(const TrainerBase& trainer, const std::string& name) {
  return trainer.download_params().at(name).floats();
}

TEST(Gradients, of_parameters_with_a_shared_gradient_are_both_returned) {
  auto trainer = compile(Pair{}, [](const Pair& m, const Inputs&) { return sum(m.a + m.b); },
                         {.optimizer = optim::SGD{.lr = 0.5}, .device = kCpu});
  trainer.step();
  const auto grads = trainer.download_grads();
  ASSERT_EQ(grads.size(), 2U);
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(grads.at(name).floats(), (std::vector<float>{1, 1})) << name;
    EXPECT_EQ(values(trainer, name), (std::vector<float>{0.5F, 0.5F})) << name;
  }
}

TEST(Gradients, are_normalised_then_cut_then_scaled) {
  auto trainer = compile(Pair{}, [](const Pair& m, const Inputs& in) { return sum(m.a * in["x"]); },
                         {.inputs = {{"x", {2}}},
                          .optimizer = optim::SGD{.lr = 1},
                          .normalize_grads = "*",
                          .clip_grad_value = 0.7,
                          .clip_grad_norm = 0.5,
                          .device = kCpu});
  trainer.step({{"x", std::vector<float>{3, 4}}});
  // (0.6, 0.8), then (0.6, 0.7) of norm 0.92195
  const std::vector<float> a = values(trainer, "a");
  EXPECT_NEAR(a[0], 1 - 0.6 * 0.5 / 0.92195, 1e-5);
  EXPECT_NEAR(a[1], 1 - 0.7 * 0.5 / 0.92195, 1e-5);
  EXPECT_NEAR(trainer.grad_norm(), 0.92195, 1e-5);
}

void expect_uploads_in_order(const std::string& kind) {
  auto trainer = shrinking_trainer(0.5, kind);
  auto four = trainer.download_params();
  const std::vector<float> fours = {4, 4};
  const auto bytes = std::as_bytes(std::span(fours));
  four.at("a").bytes.assign(bytes.begin(), bytes.end());
  trainer.submit(200);
  trainer.upload_params(four);
  EXPECT_EQ(values(trainer, "a"), fours);
  trainer.submit(1);
  EXPECT_EQ(values(trainer, "a"), (std::vector<float>{2, 2}));
  trainer.submit(200);
  trainer.reset();
  EXPECT_EQ(values(trainer, "a"), (std::vector<float>{1, 1}));
  EXPECT_EQ(trainer.steps(), 0);
}
TEST(Uploads, follow_queued_steps_on_cpu) { expect_uploads_in_order("cpu"); }
TEST(Uploads, follow_queued_steps_on_webgpu) { expect_uploads_in_order("webgpu"); }

TEST(Uploads, rejected_change_nothing) {
  auto trainer = shrinking_trainer(0.5);
  auto forward = compile_function(Pair{}, [](const Pair& m, const Inputs&) { return m.a + m.b; },
                                  {.device = kCpu});
  auto half = trainer.download_params();
  half.at("a").bytes.assign(half.at("a").bytes.size(), std::byte{0});
  half.at("b").bytes.pop_back();
  EXPECT_THROW(trainer.upload_params(half), UserError);
  EXPECT_THROW(trainer.upload_params(half, {.partial = true}), UserError);
  EXPECT_THROW(forward.upload_params(half), UserError);
  EXPECT_EQ(values(trainer, "a"), (std::vector<float>{1, 1}));
  EXPECT_EQ(forward().floats(), (std::vector<float>{2, 2}));
}

TEST(Reset, restores_the_first_schedule) {
  const Schedule first = Schedule::linear(0.5, 0, 10);
  auto trainer = shrinking_trainer(first), fresh = shrinking_trainer(first);
  trainer.run(6);
  trainer.set_lr(Schedule::linear(0.25, 0, 4));
  trainer.run(2);
  EXPECT_EQ(trainer.lr(), 0.125);
  trainer.reset();
  EXPECT_EQ(trainer.lr(), 0.5);
  EXPECT_EQ(trainer.run(8), fresh.run(8));
  EXPECT_EQ(trainer.lr(), fresh.lr());
}

TEST(Captures, keep_their_element_types) {
  const auto loss = [](const Pair& m, const Inputs& in) {
    capture("small", in["x"] < 2.0);
    capture("index", argmax(in["x"], 0));
    return sum(m.a * in["x"]);
  };
  auto trainer =
      compile(Pair{}, loss, {.inputs = {{"x", {2}}}, .optimizer = optim::SGD{}, .device = kCpu});
  const std::vector<float> x = {1, 3};
  const StepResult got = trainer.step({{"x", x}}, {.captures = {"small", "index"}});
  EXPECT_EQ(got.captures.at("small").dtype, boolean);
  EXPECT_EQ(got.captures.at("small").ints(), (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(got.captures.at("index").dtype, i32);
  EXPECT_EQ(got.captures.at("index").ints(), std::vector<std::int32_t>{1});
}

// An attached function with the same seed draws other numbers than the steps.
TEST(Random, numbers_of_an_attached_function_differ_from_the_steps) {
  const auto draw = [] { return capture("drawn", rand({64})); };
  auto trainer = compile(
      Pair{}, [&](const Pair& m, const Inputs&) { return shrinking(m, {}) + sum(draw()) * 0.0; },
      {.optimizer = optim::SGD{}, .device = kCpu});
  auto forward = trainer.attach([](const Pair&, const Inputs&) { return rand({64}); }, {});
  auto alone = compile_function(Pair{}, [](const Pair&, const Inputs&) { return rand({64}); },
                                {.device = kCpu});
  std::set<std::vector<float>> drawn;
  for (int i = 0; i < 5; ++i) {
    drawn.insert(trainer.step({}, {.captures = {"drawn"}}).captures.at("drawn").floats());
    drawn.insert(forward().floats());
  }
  EXPECT_EQ(drawn.size(), 10U);
  EXPECT_TRUE(drawn.contains(alone().floats())) << "of one seed, the same numbers";
}

TEST(Random, seeds_of_attached_functions_follow_the_trainer_or_are_own) {
  const auto drawn = [](std::uint32_t seed, std::optional<std::uint32_t> own) {
    auto trainer =
        compile(Pair{}, shrinking, {.optimizer = optim::SGD{}, .seed = seed, .device = kCpu});
    const auto draw = [](const Pair&, const Inputs&) { return rand({64}); };
    std::vector<std::vector<float>> numbers;
    for (int i = 0; i < 2; ++i) numbers.push_back(trainer.attach(draw, {.seed = own})().floats());
    return numbers;
  };
  const auto one = drawn(1, {}), two = drawn(2, {}), told = drawn(1, 7);
  EXPECT_EQ(one, drawn(1, {}));
  EXPECT_EQ((std::set<std::vector<float>>{one[0], one[1], two[0], two[1], told[0]}.size()), 5U);
  EXPECT_EQ(told, drawn(2, 7));
  EXPECT_EQ(told[0], told[1]) << "of one seed that was given";
}

TEST(Steps, continue_after_a_failed_step) {
  const auto make = [] {
    return compile(Pair{}, [](const Pair& m, const Inputs& in) { return sum(m.a * in["x"]); },
                   {.inputs = {{"x", {2}}}, .optimizer = optim::Adam{}, .device = kCpu});
  };
  auto trainer = make(), fresh = make();
  const std::vector<float> good = {1, -3}, bad = {1};
  EXPECT_FALSE(trainer.try_step({{"x", bad}}).completed());
  EXPECT_FALSE(trainer.try_step({}).completed());
  EXPECT_EQ(trainer.step({{"x", good}}).step, 1);
  fresh.step({{"x", good}});
  EXPECT_EQ(values(trainer, "a"), values(fresh, "a"));
}

TEST(Attached, outlives_its_trainer) {
  std::optional<CompiledFunction> forward;
  {
    auto trainer = shrinking_trainer(0.5);
    forward = trainer.attach([](const Pair& m, const Inputs&) { return m.a + m.b; }, {});
    trainer.submit(1);
  }
  EXPECT_EQ((*forward)().floats(), (std::vector<float>{1, 1}));
}

TEST(Attached, is_traced_when_it_is_attached) {
  auto trainer = shrinking_trainer(0.5);
  const auto wrong = [](const Pair& m, const Inputs&) { return matmul(m.a, zeros({3, 2})); };
  EXPECT_THROW(trainer.attach(wrong, {}), ShapeError);
  EXPECT_THROW(trainer.attach([](const Pair&, const Inputs& in) { return in["x"]; }, {}),
               UserError);
  auto good = trainer.attach([](const Pair& m, const Inputs&) { return m.a * 3.0; }, {});
  EXPECT_EQ(good().floats(), (std::vector<float>{3, 3})) << "the tracing that failed left nothing";
}

}  // namespace
}  // namespace tensorgrad::testing
