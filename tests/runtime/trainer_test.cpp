// SPDX-License-Identifier: MIT
// Guarantees of a trainer: one order of steps, the same bits for the same seed, and resuming bit
// for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kRows = 22, kBatch = 4;  // five batches per epoch, two rows left over

struct TanhNet {
  nn::Linear first{3, 8}, second{8, 2};
  TG_MODULE(first, second)
  Tensor operator()(Tensor x) const { return second(tanh(first(x))); }
};

Tensor noisy_loss(const TanhNet& net, const Inputs& in) {
  return mse(net(dropout(in["x"], 0.2)), in["y"]) * scalar("weight", 1.0);
}

CompileOptions noisy_options() {
  CompileOptions options;
  options.dataset = {{"x", {kRows, 3}}, {"y", {kRows, 2}}};
  options.batch = kBatch;
  options.optimizer = optim::Adam{.lr = Schedule::cosine(0.02, 0.001, 30)};
  options.clip_grad_norm = 0.5;
  options.seed = 5;
  options.device = {.kind = "cpu", .threads = 2};
  return options;
}

Trainer<TanhNet> noisy_trainer(const CompileOptions& options = noisy_options()) {
  auto trainer = compile(TanhNet{}, noisy_loss, options);
  trainer.upload_data("x", numbers(kRows * 3, 1));
  trainer.upload_data("y", numbers(kRows * 2, 2));
  return trainer;
}

TEST(Trainer, run_submit_and_step_are_the_same_steps) {
  auto a = noisy_trainer(), b = noisy_trainer(), c = noisy_trainer();
  const std::vector<float> ran = a.run(13);
  b.submit(6);
  b.submit(7);
  EXPECT_EQ(b.losses(), ran);
  std::vector<float> stepped;
  for (int i = 0; i < 13; ++i) stepped.push_back(c.step().loss);
  EXPECT_EQ(stepped, ran);
  EXPECT_EQ(bits_of(b.download_params()), bits_of(a.download_params()));
  EXPECT_EQ(bits_of(c.download_params()), bits_of(a.download_params()));
  EXPECT_EQ(c.steps(), 13);
}

TEST(Trainer, losses_keeps_the_last_4096_in_order) {
  auto a = noisy_trainer();
  a.submit(3);
  EXPECT_EQ(a.losses().size(), 3U);
  EXPECT_TRUE(a.losses().empty());
  a.submit(5000);
  const std::vector<float> late = a.losses();
  EXPECT_EQ(late.size(), 4096U);
  auto b = noisy_trainer();
  for (int i = 0; i < 5002; ++i) b.submit(1);
  b.losses();
  EXPECT_EQ(b.run(1)[0], late.size() == 4096 ? late.back() : 0) << "the last of 5003 steps";
}

TEST(Trainer, counts_epochs_and_batches) {
  auto trainer = noisy_trainer();
  EXPECT_EQ(trainer.batches_per_epoch(), 5);
  trainer.run(4);
  EXPECT_EQ(trainer.epoch(), 0);
  trainer.run(1);
  EXPECT_EQ(trainer.epoch(), 1);
  trainer.run(11);
  EXPECT_EQ(trainer.epoch(), 3);
}

struct One {
  Parameter w{{1}};
  TG_MODULE(w)
};

// The loss is the sum of 2^row over the batch, which is exact in f32 and shows which rows were
// drawn.
void expect_every_row_once(bool shuffle) {
  CompileOptions options;
  options.dataset = {{"bit", {20}}};
  options.batch = 5;
  options.shuffle = shuffle;
  options.optimizer = optim::SGD{.lr = 0};
  options.device = {.kind = "cpu"};
  auto trainer = compile(
      One{}, [](const One& m, const Inputs& in) { return sum(in["bit"]) + sum(m.w) * 0; }, options);
  std::vector<float> bits;
  for (int i = 0; i < 20; ++i) bits.push_back(std::ldexp(1.0F, i));
  trainer.upload_data("bit", bits);
  std::set<std::vector<float>> orders;
  for (int epoch = 0; epoch < 4; ++epoch) {
    std::uint32_t seen = 0;
    const std::vector<float> losses = trainer.run(4);
    for (const float loss : losses) {
      const auto rows = static_cast<std::uint32_t>(loss);
      EXPECT_EQ(seen & rows, 0U);
      EXPECT_EQ(__builtin_popcount(rows), 5);
      seen |= rows;
    }
    EXPECT_EQ(seen, (1U << 20) - 1);
    orders.insert(losses);
    if (!shuffle) {
      EXPECT_EQ(losses[0], 31.0F);
    }
  }
  EXPECT_EQ(orders.size(), shuffle ? 4U : 1U);
}

TEST(Dataset, is_visited_once_an_epoch_in_a_new_order) { expect_every_row_once(true); }
TEST(Dataset, without_shuffle_is_visited_in_its_order) { expect_every_row_once(false); }

TEST(Trainer, bits_depend_only_on_the_seed) {
  CompileOptions one = noisy_options(), four = noisy_options(), other = noisy_options();
  one.device.threads = 1;
  four.device.threads = 4;
  other.seed = 6;
  auto a = noisy_trainer(one), b = noisy_trainer(four), c = noisy_trainer(other);
  EXPECT_EQ(a.run(20), b.run(20));
  EXPECT_EQ(bits_of(a.download_params()), bits_of(b.download_params()));
  c.run(20);
  EXPECT_NE(bits_of(a.download_params()), bits_of(c.download_params()));
}

struct Hidden {
  nn::Linear first{16, 64}, second{64, 64};
  TG_MODULE(first, second)
};

// The products take ten microseconds, so some steps run them on one thread and others on the pool
// (backend/cpu/parallel_tuner.h).
TEST(Trainer, bits_do_not_depend_on_sharing_small_launches) {
  const auto trained = [](int threads) {
    auto trainer = compile(Hidden{},
                           [](const Hidden& net, const Inputs& in) {
                             return mean(square(net.second(relu(net.first(in["x"])))));
                           },
                           {.inputs = {{"x", {256, 16}}},
                            .optimizer = optim::Adam{.lr = 1e-3},
                            .device = {.kind = "cpu", .threads = threads}});
    std::vector<float> x(256 * 16);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    for (int i = 0; i < 600; ++i) trainer.step({{"x", x}});
    return bits_of(trainer.download_params());
  };
  EXPECT_EQ(trained(1), trained(2));
}

TEST(Trainer, resumed_in_the_middle_of_an_epoch_continues_bit_for_bit) {
  for (const int before : {0, 3, 5, 12}) {
    const std::string path = temporary("resume.safetensors");
    auto whole = noisy_trainer();
    whole.set("weight", 0.75);
    whole.run(before);
    whole.save(path);
    const std::vector<float> want = whole.run(14);
    CompileOptions options = noisy_options();
    options.seed = 999;  // the file's seed is used
    auto resumed = noisy_trainer(options);
    resumed.run(2);
    resumed.load(path);
    EXPECT_EQ(resumed.steps(), before);
    EXPECT_EQ(resumed.run(14), want) << before;
    EXPECT_EQ(bits_of(resumed.download_params()), bits_of(whole.download_params())) << before;
    EXPECT_EQ(resumed.lr(), whole.lr());
    EXPECT_EQ(resumed.epoch(), whole.epoch());
    std::filesystem::remove(path);
  }
}

TEST(Trainer, reset_starts_over) {
  auto trainer = noisy_trainer();
  const Bits initial = bits_of(trainer.download_params());
  const std::vector<float> first = trainer.run(9);
  trainer.reset();
  EXPECT_EQ(trainer.steps(), 0);
  EXPECT_EQ(bits_of(trainer.download_params()), initial);
  EXPECT_EQ(trainer.run(9), first);
}

TEST(Trainer, set_lr_counts_from_the_next_step) {
  auto trainer = noisy_trainer();
  trainer.run(3);
  trainer.set_lr(Schedule::linear(0.1, 0.0, 10));
  EXPECT_DOUBLE_EQ(trainer.lr(), 0.1);
  trainer.run(4);
  EXPECT_DOUBLE_EQ(trainer.lr(), 0.06);
  trainer.set_lr(0.0);
  const Bits still = bits_of(trainer.download_params());
  trainer.run(3);
  EXPECT_EQ(bits_of(trainer.download_params()), still);
}

TEST(Trainer, attached_function_sees_the_parameters_as_they_are) {
  auto trainer = noisy_trainer();
  CompiledFunction forward =
      trainer.attach([](const TanhNet& net, const Inputs& in) { return net(in["x"]); },
                     {.inputs = {{"x", {2, 3}}}});
  const std::vector<float> x = numbers(6, 9);
  const std::vector<float> before = forward({{"x", x}}).floats();
  trainer.run(5);
  const std::vector<float> after = forward({{"x", x}}).floats();
  EXPECT_NE(after, before);
  CompiledFunction alone =
      compile_function(TanhNet{}, [](const TanhNet& net, const Inputs& in) { return net(in["x"]); },
                       {.inputs = {{"x", {2, 3}}}, .device = {.kind = "cpu"}});
  alone.upload_params(trainer.download_params());
  EXPECT_EQ(alone({{"x", x}}).floats(), after);
}

// Returns a running mean of the inputs.
Tensor running_mean(const Inputs& in, bool training) {
  const Tensor seen = state("seen", {3}, 10);
  if (training) set_state("seen", seen * 0.5 + mean(in["x"], {0}) * 0.5);
  return seen;
}

TEST(Trainer, attached_function_sees_the_states_as_they_are) {
  const auto loss = [](const TanhNet& net, const Inputs& in) {
    return mean(net(in["x"] - running_mean(in, true)));
  };
  const auto evaluate = [](const TanhNet&, const Inputs& in) { return running_mean(in, false); };
  auto trainer =
      compile(TanhNet{}, loss,
              {.inputs = {{"x", {2, 3}}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
  const std::vector<float> x(6, 20);
  const Feed feed = {{"x", x}};
  trainer.step(feed);
  CompiledFunction forward = trainer.attach(evaluate, {});
  EXPECT_EQ(forward({}).floats(), std::vector<float>(3, 15));
  trainer.step(feed);
  EXPECT_EQ(forward({}).floats(), std::vector<float>(3, 17.5F));

  const std::string path = temporary("states");
  save(trainer, path);
  CompiledFunction alone = compile_function(TanhNet{}, evaluate, {.device = {.kind = "cpu"}});
  EXPECT_EQ(alone({}).floats(), std::vector<float>(3, 10));
  alone.load_params(path);
  EXPECT_EQ(alone({}).floats(), std::vector<float>(3, 17.5F));
  std::filesystem::remove(path);

  const auto other = [](const TanhNet&, const Inputs&) { return state("seen", {3}, 0, i32); };
  EXPECT_THROW(trainer.attach(other, {}), UserError);
}

struct Tied {
  std::shared_ptr<nn::Linear> a = std::make_shared<nn::Linear>(3, 3, false);
  std::shared_ptr<nn::Linear> b = a;
  TG_MODULE(a, b)
};

TEST(Trainer, shared_modules_are_one_parameter_with_both_gradients) {
  CompileOptions options{
      .inputs = {{"x", {4, 3}}}, .optimizer = optim::SGD{.lr = 0}, .device = {.kind = "cpu"}};
  auto tied = compile(
      Tied{}, [](const Tied& m, const Inputs& in) { return sum((*m.b)((*m.a)(in["x"]))); },
      options);
  EXPECT_EQ(tied.parameter_names(), std::vector<std::string>{"a.weight"});
  Tied apart;
  apart.b = std::make_shared<nn::Linear>(3, 3, false);
  auto two = compile(
      apart, [](const Tied& m, const Inputs& in) { return sum((*m.b)((*m.a)(in["x"]))); }, options);
  auto params = two.download_params();
  params["a.weight"] = params["b.weight"] = tied.download_params().at("a.weight");
  two.upload_params(params);
  const std::vector<float> x = numbers(12, 3);
  EXPECT_FLOAT_EQ(tied.step({{"x", x}}).loss, two.step({{"x", x}}).loss);
  const auto both = tied.download_grads().at("a.weight").floats();
  const auto a = two.download_grads().at("a.weight").floats(),
             b = two.download_grads().at("b.weight").floats();
  for (std::size_t i = 0; i < both.size(); ++i) EXPECT_NEAR(both[i], a[i] + b[i], 1e-5);
}

TEST(Trainer, state_keeps_its_value_and_is_saved) {
  const auto loss = [](const One& m, const Inputs&) {
    const Tensor count = state("count", {}, 10);
    set_state("count", count + 1.0);
    return count + sum(m.w) * 0;
  };
  CompileOptions options{.optimizer = optim::SGD{.lr = 0}, .device = {.kind = "cpu"}};
  auto trainer = compile(One{}, loss, options);
  EXPECT_EQ(trainer.run(3), (std::vector<float>{10, 11, 12}));
  const std::string path = temporary("state.safetensors");
  trainer.save(path);
  trainer.reset();
  EXPECT_EQ(trainer.run(1), (std::vector<float>{10}));
  trainer.load(path);
  EXPECT_EQ(trainer.run(2), (std::vector<float>{13, 14}));
  std::filesystem::remove(path);
}

TEST(Trainer, clips_the_norm_of_all_gradients_together) {
  CompileOptions options{
      .inputs = {{"x", {2}}}, .optimizer = optim::SGD{.lr = 1}, .device = {.kind = "cpu"}};
  options.clip_grad_norm = 1;
  struct Two {
    Parameter a{{1}}, b{{1}};
    TG_MODULE(a, b)
  };
  auto trainer = compile(
      Two{},
      [](const Two& m, const Inputs& in) {
        return sum(m.a * narrow(in["x"], 0, 0, 1)) + sum(m.b * narrow(in["x"], 0, 1, 1));
      },
      options);
  const std::vector<float> large = {3, 4}, small = {0.3F, 0.4F};
  trainer.step({{"x", large}});
  EXPECT_NEAR(trainer.download_params().at("a").floats()[0], -0.6, 1e-5);
  EXPECT_NEAR(trainer.download_params().at("b").floats()[0], -0.8, 1e-5);
  trainer.step({{"x", small}});
  EXPECT_NEAR(trainer.download_params().at("a").floats()[0], -0.9, 1e-5);
  trainer.set("clip_grad_norm", 10);
  trainer.step({{"x", large}});
  EXPECT_NEAR(trainer.download_params().at("b").floats()[0], -5.2, 1e-4);
}

TEST(Trainer, calls_from_several_threads_run_one_after_another) {
  auto trainer = noisy_trainer();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        if (t == 0) trainer.submit(2);
        if (t == 1) static_cast<void>(trainer.step());
        if (t == 2) static_cast<void>(trainer.download_params());
        if (t == 3) static_cast<void>(trainer.losses());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trainer.steps(), 30);
  auto alone = noisy_trainer();
  alone.run(30);
  EXPECT_EQ(bits_of(alone.download_params()), bits_of(trainer.download_params()));
}

// Mean and variance of the random numbers of one step. Other steps and other ops draw other
// numbers.
TEST(Random, differs_between_steps_and_ops_and_has_its_moments) {
  CompileOptions options{.optimizer = optim::SGD{.lr = 0}, .device = {.kind = "cpu"}};
  const auto run = [&](const std::function<Tensor()>& value) {
    auto trainer = compile(
        One{}, [&](const One& m, const Inputs&) { return value() + sum(m.w) * 0; }, options);
    return trainer.run(8);
  };
  const std::vector<float> means = run([] { return mean(rand({10000})); });
  EXPECT_EQ(std::set<float>(means.begin(), means.end()).size(), 8U);
  for (const float mean : means) EXPECT_NEAR(mean, 0.5, 0.015);
  for (const float spread : run([] { return var(rand({10000})); }))
    EXPECT_NEAR(spread, 1 / 12.0, 0.003);
  for (const float mean : run([] { return mean(randn({10000})); })) EXPECT_NEAR(mean, 0, 0.05);
  for (const float spread : run([] { return var(randn({10000})); })) EXPECT_NEAR(spread, 1, 0.06);
  for (const float both : run([] { return mean((rand({10000}) - 0.5) * (rand({10000}) - 0.5)); })) {
    EXPECT_NEAR(both, 0, 0.004);
  }
  for (const float kept : run([] { return mean(dropout(ones({10000}), 0.25)); }))
    EXPECT_NEAR(kept, 1, 0.03);
}

}  // namespace
}  // namespace tensorgrad::testing
