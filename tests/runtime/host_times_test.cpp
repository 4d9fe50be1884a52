// SPDX-License-Identifier: MIT
// Trainer::host_times(), the breakdown of host time.
#include <gtest/gtest.h>

#include <chrono>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

struct TimedNet {
  nn::Linear fc{16, 16};
  TG_MODULE(fc)
};

auto timed_trainer(const DeviceOptions& device) {
  return compile(
      TimedNet{},
      [](const TimedNet& net, const Inputs& in) { return mse(net.fc(in["x"]), in["x"]); },
      {.inputs = {{"x", {8, 16}}}, .optimizer = optim::SGD{.lr = 0.1}, .device = device});
}

TEST(HostTimes, of_steps_on_webgpu_sum_to_at_most_the_elapsed_time) {
  auto trainer = timed_trainer({.kind = "webgpu", .allow_software = true});
  const std::vector<float> x(8 * 16, 0.5f);
  trainer.step({{"x", x}});
  const HostTimes before = trainer.host_times();
  EXPECT_GT(before.encoding, 0);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) trainer.step({{"x", x}});
  const std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - start;
  const HostTimes spent = trainer.host_times() - before;
  EXPECT_GT(spent.encoding, 0);
  EXPECT_GT(spent.submitting, 0);
  EXPECT_GT(spent.waiting, 0);
  EXPECT_LE(spent.encoding + spent.submitting + spent.waiting, all.count());
  const HostTimes idle = trainer.host_times() - before;
  EXPECT_EQ(idle.encoding, spent.encoding);
}

TEST(HostTimes, are_zero_on_the_cpu) {
  auto trainer = timed_trainer({.kind = "cpu"});
  const std::vector<float> x(8 * 16, 0.5f);
  trainer.step({{"x", x}});
  const HostTimes times = trainer.host_times();
  EXPECT_EQ(times.encoding + times.submitting + times.waiting, 0);
}

}  // namespace
}  // namespace tensorgrad::testing
