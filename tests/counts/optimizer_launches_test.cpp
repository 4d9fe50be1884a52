// SPDX-License-Identifier: MIT
// Clipping by the global norm and the whole optimizer take at most three launches, whatever the
// number of parameters: for a large GPU, for the minimum limits of WebGPU and for the CPU.
#include <gtest/gtest.h>

#include <set>

#include "debug/wrapped_device.h"
#include "large_gpu.h"
#include "small_workloads.h"

namespace tensorgrad::testing {
namespace {

// Returns the launches that read a gradient or a value computed from one.
std::vector<std::string> behind_the_gradients(const Program& program) {
  std::set<int> made;  // buffers with gradients, or values computed from them
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].kind == BufferKind::kGrads) made.insert(static_cast<int>(i));
  }
  EXPECT_EQ(made.size(), 1U);
  const std::set<int> grads = made;
  std::vector<std::string> names;
  for (const Launch& launch : program.launches) {
    const auto reads = [&](const Binding& each) {
      return each.mode != BindMode::kWrite && made.contains(each.buffer);
    };
    const bool behind = std::any_of(launch.bindings.begin(), launch.bindings.end(), reads);
    if (behind) names.push_back(launch.name);
    for (const Binding& each : launch.bindings) {
      if (each.mode == BindMode::kRead || grads.contains(each.buffer)) continue;
      if (behind) made.insert(each.buffer);
      if (!behind) made.erase(each.buffer);
    }
  }
  return names;
}

void expect_three_at_most(const std::shared_ptr<Device>& plain) {
  for (const int layers : {1, 6}) {
    const auto device = std::make_shared<RecordingDevice>(plain);
    // Uses clipping by norm and AdamW.
    bench::make_workload("addition", bench::Feeding::kHost, on(device), {.layers = layers});
    ASSERT_EQ(device->programs.size(), 1U);
    const Program& program = device->programs[0];
    const std::vector<std::string> names = behind_the_gradients(program);
    EXPECT_LE(names.size(), 3U) << layers << " layers: " << ::testing::PrintToString(names);
    EXPECT_GE(names.size(), 2U) << "the norm and the update are counted";
    // The last launch writes the parameters and both moments.
    int written = 0;
    for (const Binding& each : program.launches.back().bindings) {
      const BufferKind kind = program.buffers[static_cast<std::size_t>(each.buffer)].kind;
      const bool kept = kind == BufferKind::kParams || kind == BufferKind::kState;
      written += kept && each.mode == BindMode::kReadWrite ? 1 : 0;
    }
    EXPECT_EQ(written, 3) << print(program);
  }
}

TEST(OptimizerLaunches, are_three_at_most_on_a_large_gpu) {
  expect_three_at_most(large_gpu().opened);
}
TEST(OptimizerLaunches, are_three_at_most_with_the_least_limits) {
  expect_three_at_most(make_null_device({}));
}
TEST(OptimizerLaunches, are_three_at_most_on_cpu) {
  expect_three_at_most(make_cpu_device({.threads = 1}));
}

}  // namespace
}  // namespace tensorgrad::testing
