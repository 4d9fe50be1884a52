// SPDX-License-Identifier: MIT
// The memory of the process does not grow with the number of steps.
#include <gtest/gtest.h>

#include <unistd.h>
#ifdef __APPLE__
#include <mach/mach.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "base/env.h"
#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

#ifdef TENSORGRAD_SANITIZED
// GCC does not install sanitizer/allocator_interface.h.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
extern "C" void __sanitizer_purge_allocator();
#endif

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kMaxGrowth = 8 << 20;  // bytes that allocators and drivers may keep
constexpr double kMaxSlowdown = 1.25;         // of later steps
constexpr int kMinTimedSteps = 20'000;

// Returns the bytes in use. Sanitizers keep freed blocks until they are purged.
std::int64_t bytes_in_use() {
#ifdef TENSORGRAD_SANITIZED
  __sanitizer_purge_allocator();
  return static_cast<std::int64_t>(__sanitizer_get_current_allocated_bytes());
#elif defined(__APPLE__)
  mach_task_basic_info info = {};
  mach_msg_type_number_t size = MACH_TASK_BASIC_INFO_COUNT;
  task_info(mach_task_self(), MACH_TASK_BASIC_INFO, reinterpret_cast<task_info_t>(&info), &size);
  return static_cast<std::int64_t>(info.resident_size);
#else
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
#endif
}

struct Flat {
  nn::Linear hidden{3, 8}, out{8, 2};
  TG_MODULE(hidden, out)
};

// Runs two trainers on one device, and a function of the first, with all kinds of steps.
void stays_flat(const std::string& kind, int steps) {
  const auto loss = [](const Flat& net, const Inputs& in) {
    return mse(capture("y", net.out(tanh(net.hidden(in["x"])))), in["y"]);
  };
  CompileOptions options{.inputs = {{"x", {4, 3}}, {"y", {4, 2}}}, .optimizer = optim::Adam{}};
  options.device = {.kind = kind, .allow_software = true};
  options.recovery = {.snapshot_steps = 20};
  auto trainer = compile(Flat{}, loss, options);
  CompileOptions with_data{.dataset = {{"x", {22, 3}}, {"y", {22, 2}}},
                           .batch = 4,
                           .optimizer = optim::Adam{},
                           .device = trainer.same_device(),
                           .recovery = options.recovery};
  auto other = compile(Flat{}, loss, with_data);
  give_data(other);
  auto predict =
      trainer.attach([](const Flat& net, const Inputs& in) { return net.out(net.hidden(in["x"])); },
                     {.inputs = {{"x", {kDynamic, 3}}}});
  const auto x = numbers(12, 1), y = numbers(8, 2);
  const Feed feed = {{"x", x}, {"y", y}};
  const auto some = [&](int count) {
    for (int done = 0; done < count; done += 10) {
      trainer.step(feed);
      trainer.step(feed, {.captures = {"y"}});
      while (!trainer.step_for(0, feed)) {
      }
      other.run(4);
      other.submit(3);
      other.losses();
      const auto rows = static_cast<std::int64_t>(done / 10 % 12 + 1);
      static_cast<void>(predict({{"x", numbers(3 * rows, 1)}}));
    }
  };
  some(steps / 5 + 150);  // every size has been used once
  const std::int64_t before = bytes_in_use();
  const int steps_in_part = steps / 10;
  // Measures ten parts, so that ./dev soak finds out whether later steps are slower.
  std::vector<double> milliseconds;
  for (int part = 0; part < 10; ++part) {
    const auto began = std::chrono::steady_clock::now();
    some(steps_in_part);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    milliseconds.push_back(took.count() / steps_in_part);
  }
  const std::int64_t growth = bytes_in_use() - before;
  std::printf("%s: %d steps, %lld bytes more in use, milliseconds per step in tenths:",
              kind.c_str(), steps, static_cast<long long>(growth));
  for (const double each : milliseconds) std::printf(" %.4f", each);
  std::printf("\n");
  EXPECT_LT(growth, kMaxGrowth);
  // Other work on the machine slows down single parts, so the fastest of each half are compared.
  // The parts of a short run take too little time for that.
  if (steps < kMinTimedSteps) return;
  const auto middle = milliseconds.begin() + 5;
  const double early = *std::min_element(milliseconds.begin(), middle);
  const double late = *std::min_element(middle, milliseconds.end());
  EXPECT_LT(late, kMaxSlowdown * early);
}

// The long version sets the number of steps; see docs/testing.md.
int steps_or(int usual) {
  const std::string wanted = env("TENSORGRAD_FLAT_MEMORY_STEPS");
  return wanted.empty() ? usual : std::stoi(wanted);
}

TEST(FlatMemory, over_many_steps_on_cpu) { stays_flat("cpu", steps_or(3000)); }
TEST(FlatMemory, over_many_steps_on_webgpu) { stays_flat("webgpu", steps_or(300)); }

}  // namespace
}  // namespace tensorgrad::testing
