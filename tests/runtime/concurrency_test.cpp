// SPDX-License-Identifier: MIT
// Calls of several threads: the order in which they take effect, and what abort() leaves unchanged
// (docs/training.md, Concurrency).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

struct OneOfMany {
  nn::Linear first{3, 8}, second{8, 2};
  TG_MODULE(first, second)
};

// Counts its steps on the device.
Tensor counted_loss(const OneOfMany& net, const Inputs& in) {
  const Tensor count = state("count", {});
  set_state("count", count + 1.0);
  return mse(net.second(tanh(net.first(in["x"]))), in["y"]) * scalar("weight", 1.0);
}

Trainer<OneOfMany> counting_trainer(DeviceOptions device, std::uint32_t seed = 1) {
  auto trainer = compile(OneOfMany{}, counted_loss,
                         {.dataset = {{"x", {22, 3}}, {"y", {22, 2}}},
                          .batch = 4,
                          .optimizer = optim::Adam{.lr = 0.01},
                          .seed = seed,
                          .device = std::move(device)});
  give_data(trainer);
  return trainer;
}

DeviceOptions device_named(const char* kind) {
  return {.kind = kind, .threads = 2, .allow_software = true};
}

void expect_in_order_of_calls(const char* kind) {
  auto queued = counting_trainer(device_named(kind)), waited = counting_trainer(device_named(kind));
  queued.submit(5);
  queued.set_lr(0.125);
  queued.submit(5);
  queued.set("weight", 0.25);
  queued.submit(5);
  const Bits there = everything(queued);
  queued.submit(5);
  waited.run(5);
  waited.set_lr(0.125);
  waited.run(5);
  waited.set("weight", 0.25);
  waited.run(5);
  EXPECT_EQ(everything(waited), there);
  waited.run(5);
  EXPECT_EQ(everything(waited), everything(queued));
}
TEST(Concurrency, reads_and_writes_keep_their_order_among_steps_on_cpu) {
  expect_in_order_of_calls("cpu");
}
TEST(Concurrency, reads_and_writes_keep_their_order_among_steps_on_webgpu) {
  expect_in_order_of_calls("webgpu");
}

// Each run() queues several batches of steps. No other call runs between them, not even one of a
// function.
TEST(Concurrency, run_is_not_interrupted_by_other_threads) {
  constexpr int kRun = 600, kRuns = 30, kWatching = 4;
  auto trainer = counting_trainer(device_named("cpu"));
  CompiledFunction count =
      trainer.attach([](const OneOfMany&, const Inputs&) { return state("count", {}) + 0.0; }, {});
  std::atomic<int> looks = 0, within = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> watching;
  for (int t = 0; t < kWatching; ++t) {
    watching.emplace_back([&, t] {
      for (; !done; ++looks) {
        const double steps = t == 0 ? count().floats()[0] : static_cast<double>(trainer.steps());
        if (std::fmod(steps, kRun) != 0) ++within;
      }
    });
  }
  for (int i = 0; i < kRuns; ++i) {
    const int before = looks;  // the other threads are reading when a run begins
    while (looks < before + kWatching) std::this_thread::yield();
    EXPECT_EQ(trainer.run(kRun).size(), std::size_t{kRun});
  }
  done = true;
  for (std::thread& each : watching) each.join();
  EXPECT_EQ(within, 0);
  EXPECT_EQ(count().floats()[0], kRun * kRuns);
}

// A thread that steps in a loop lets a waiting call go first. More steps can only pass if this
// thread is preempted between reading the count and requesting its turn.
TEST(Concurrency, calls_run_in_the_order_they_were_made) {
  auto trainer = counting_trainer(device_named("cpu"));
  CompiledFunction predict =
      trainer.attach([](const OneOfMany& net, const Inputs& in) { return net.first(in["x"]); },
                     {.inputs = {{"x", {1, 3}}}});
  std::atomic<bool> stop = false;
  std::atomic<int> runs = 0;
  std::thread steps([&] {
    while (!stop) {
      trainer.run(20);
      ++runs;
    }
  });
  const std::vector<float> x(3, 1);
  std::vector<int> passed;
  for (int i = 0; i < 51; ++i) {
    const int before = runs;
    predict({{"x", x}});
    passed.push_back(runs - before);
  }
  stop = true;
  steps.join();
  std::nth_element(passed.begin(), passed.begin() + 25, passed.end());
  EXPECT_LE(passed[25], 1);
}

TEST(Concurrency, abort_does_not_end_reads_and_writes) {
  auto trainer = counting_trainer(device_named("cpu"));
  std::atomic<bool> stop = false;
  std::atomic<int> read = 0, failed = 0;
  std::thread stepping([&] {
    while (!stop) static_cast<void>(trainer.try_step());
  });
  std::vector<std::thread> reading;
  for (int t = 0; t < 3; ++t) {
    reading.emplace_back([&] {
      while (!stop) {
        try {
          static_cast<void>(trainer.download_params());
          static_cast<void>(trainer.losses());
          trainer.set_lr(0.01);
          trainer.set("weight", 1.0);
          ++read;
        } catch (const AbortedError&) {
          ++failed;
        }
      }
    });
  }
  while (read + failed < 10000) trainer.abort();
  stop = true;
  stepping.join();
  for (std::thread& each : reading) each.join();
  EXPECT_EQ(failed, 0);
}

void expect_as_alone(const char* kind) {
  auto one = counting_trainer(device_named(kind), 1), two = counting_trainer(one.same_device(), 2);
  const auto train = [](Trainer<OneOfMany>& trainer) {
    for (int i = 0; i < 8; ++i) {
      trainer.submit(3);
      static_cast<void>(trainer.step());
      static_cast<void>(trainer.download_params());
    }
  };
  std::thread concurrent([&] { train(two); });
  train(one);
  concurrent.join();
  for (unsigned seed : {1U, 2U}) {
    auto alone = counting_trainer(one.same_device(), seed);
    train(alone);
    EXPECT_EQ(everything(seed == 1 ? one : two), everything(alone)) << "seed " << seed;
  }
  EXPECT_NE(everything(one), everything(two));
}
TEST(Concurrency, trainers_of_two_threads_share_a_device_on_cpu) { expect_as_alone("cpu"); }
TEST(Concurrency, trainers_of_two_threads_share_a_device_on_webgpu) { expect_as_alone("webgpu"); }

}  // namespace
}  // namespace tensorgrad::testing
