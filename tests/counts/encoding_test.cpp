// SPDX-License-Identifier: MIT
// Calls to a WebGPU library, counted by one that computes nothing: compute passes, submits, and
// pipelines that are created at the same time.
#if defined(TENSORGRAD_IDLE_WEBGPU)
#include <gtest/gtest.h>

#include "idle_device.h"
#include "small_workloads.h"

namespace tensorgrad::testing {
namespace {

using bench::Feeding;

struct Asked {
  int passes, submits, dispatches;
};

template <class Call>
Asked asked_by(const Call& call) {
  IdleWebGpu& asked = idle_webgpu();
  asked.passes = asked.submits = asked.dispatches = 0;
  call();
  return {asked.passes, asked.submits, asked.dispatches};
}

TEST(Encoding, of_a_step_is_one_pass_on_webgpu) {
  const std::shared_ptr<Device> device = idle_device();
  for (const std::string& model : kSmallModels) {
    bench::Workload workload = small_workload(model, Feeding::kHost, device);
    const int launches = workload.trainer.report().launches;
    ASSERT_LT(launches, webgpu::kFirstDispatches * 3 / 2) << model << ": longer steps have parts";
    for (int i = 0; i < 3; ++i) {
      const Asked asked = asked_by([&] { workload.trainer.step(workload.feed()); });
      EXPECT_EQ(asked.passes, 1) << model << ", step " << i;
      EXPECT_EQ(asked.dispatches, launches) << model;
      EXPECT_EQ(asked.submits, 2) << model << ": the step, and the copy of its loss";
    }
  }
}

// To keep the GPU busy, the first 64 dispatches are submitted while the rest is encoded, then 128,
// and so on.
TEST(Encoding, of_a_long_step_is_a_pass_for_each_part_on_webgpu) {
  bench::Workload workload = bench::make_workload("addition", Feeding::kHost, on(idle_device()),
                                                  {.batch = 4, .layers = 16});
  const int launches = workload.trainer.report().launches;
  ASSERT_GE(launches, 64 + 128 + 64);
  ASSERT_LT(launches, 64 + 128 + 256 + 128);
  const auto step = [&] { workload.trainer.step(workload.feed()); };
  EXPECT_EQ(asked_by(step).passes, 1) << "the driver looks at the first step as a whole";
  for (int i = 0; i < 3; ++i) {
    const Asked asked = asked_by(step);
    EXPECT_EQ(asked.passes, 3);
    EXPECT_EQ(asked.dispatches, launches);
  }
}

// Returns the number of pieces in which `steps` steps are submitted. The first piece has 64
// dispatches, each later one as many steps as all previous ones together, at most 1024 dispatches
// and 256 steps.
int pieces(int steps, int launches) {
  int count = 0;
  for (int at = 0; at < steps; ++count)
    at += std::min({std::max(64 / launches, at), 1024 / launches, 256});
  return count;
}

TEST(Encoding, of_queued_steps_is_one_pass_for_all_of_a_submit_on_webgpu) {
  const std::shared_ptr<Device> device = idle_device();
  for (const std::string& model : kSmallModels) {
    bench::Workload workload = small_workload(model, Feeding::kDevice, device);
    // No epoch ends within the steps, because a new order of the data ends a piece.
    const int steps = model == "addition" || model == "mamba1" ? 8 : 200;
    const int launches = workload.trainer.report().launches;
    ASSERT_LE(launches, 64) << model;
    for (int i = 0; i < 3; ++i) {
      const Asked asked = asked_by([&] { workload.trainer.submit(steps); });
      EXPECT_EQ(asked.dispatches, steps * launches) << model;
      EXPECT_EQ(asked.passes, pieces(steps, launches)) << model << ", call " << i;
      EXPECT_EQ(asked.submits, asked.passes) << model;
    }
    EXPECT_LT(pieces(steps, launches), steps) << model;
  }
}

TEST(Encoding, of_a_large_submit_is_a_pass_for_each_thread_that_encodes_on_webgpu) {
  bench::Workload workload = small_workload("mlp-sin", Feeding::kDevice, idle_device(2));
  workload.trainer.submit(1);
  const Asked asked = asked_by([&] { workload.trainer.submit(200); });
  EXPECT_GT(asked.passes, asked.submits);
  EXPECT_LE(asked.passes, 2 * asked.submits);
}

TEST(Pipelines, are_made_by_several_threads_at_a_time_on_webgpu) {
  if (usable_cores() < 2) GTEST_SKIP() << "one core: one thread makes them";
  IdleWebGpu& asked = idle_webgpu();
  const std::shared_ptr<Device> device = idle_device();
  asked.pipelines = asked.most_making = 0;
  asked.expected_making = 2;
  const bench::Workload workload = small_workload("addition", Feeding::kHost, device);
  const bool together = asked.expected_making == 2;
  asked.expected_making = 0;
  EXPECT_TRUE(together) << "a call waited for another one that did not come";
  EXPECT_GE(asked.most_making, 2);
  EXPECT_GT(asked.pipelines, 2);
  EXPECT_LE(asked.pipelines, workload.trainer.report().launches);
}

// Outputs that are fed back alternate between few buffers, whose bind groups are kept. Each new one
// would wait for the driver.
TEST(Encoding, of_outputs_that_are_fed_back_creates_no_bind_groups_on_webgpu) {
  DeviceOptions options = on(idle_device());
  CompiledFunction step = compile_function(
      [](const Inputs& in) {
        const Tensor next = tanh(matmul(in["state"], in["weight"]));
        return std::map<std::string, Tensor>{{"state", next}, {"sum", sum(next)}};
      },
      {.inputs = {{"state", {8, 8}}, {"weight", {8, 8}}}, .device = options});
  const std::vector<float> start(64);
  NamedDeviceTensors out = step.run_on_device({{"state", start}, {"weight", start}});
  const auto repeat = [&](int times) {
    for (int i = 0; i < times; ++i) {
      out = step.run_on_device({{"state", out.at("state")}, {"weight", start}});
      out.erase("sum");
    }
  };
  repeat(8);
  IdleWebGpu& asked = idle_webgpu();
  const int groups = asked.bind_groups, scopes = asked.error_scopes, buffers = asked.buffers;
  repeat(40);
  EXPECT_EQ(asked.bind_groups, groups);
  EXPECT_EQ(asked.error_scopes, scopes);
  EXPECT_EQ(asked.buffers, buffers);
  // Outputs that the user holds have buffers, and so bind groups, of their own.
  std::vector<DeviceTensor> held;
  for (int i = 0; i < 12; ++i)
    held.push_back(step.run_on_device({{"state", start}, {"weight", start}}).at("state"));
  EXPECT_GT(asked.bind_groups, groups);
}

}  // namespace
}  // namespace tensorgrad::testing
#endif
