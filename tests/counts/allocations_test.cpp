// SPDX-License-Identifier: MIT
// Training steps allocate neither host memory nor device buffers, on any thread. All allocations of
// the process are counted. On WebGPU, the library computes nothing, because drivers allocate memory
// of their own. Skipped with sanitizers (see counting_malloc.h).
#include <gtest/gtest.h>

#include <cstdlib>

#include "counting_malloc.h"
#include "metered_device.h"
#include "small_workloads.h"
#if defined(TENSORGRAD_IDLE_WEBGPU)
#include "idle_device.h"
#endif

namespace tensorgrad::testing {
namespace {

using bench::Feeding;

constexpr int kSteps = 40;  // an epoch of a decoder has 8

#define TENSORGRAD_SKIP_WHERE_NOTHING_IS_COUNTED() \
  if (!kCountsAllocations) GTEST_SKIP() << "counting needs glibc's malloc, and no sanitizer's"

// Returns the number of allocations of a second call. The first call may allocate what later ones
// reuse.
template <class Call>
std::int64_t allocated_by(const Call& call) {
  call();
  const std::int64_t before = allocations();
  call();
  return allocations() - before;
}

void expect_steps_allocate_nothing(const std::string& model, const std::shared_ptr<Device>& plain) {
  const auto device = std::make_shared<MeteredDevice>(plain);
  bench::Workload workload = small_workload(model, Feeding::kHost, device);
  const FeedView feed = workload.feed();
  const std::int64_t before = device->allocated;
  EXPECT_EQ(0, allocated_by([&] {
              for (int i = 0; i < kSteps; ++i) workload.trainer.step(feed);
            }))
      << model;
  EXPECT_EQ(device->allocated, before) << model;
}

void expect_queued_steps_allocate_nothing(const std::string& model,
                                          const std::shared_ptr<Device>& plain) {
  const auto device = std::make_shared<MeteredDevice>(plain);
  bench::Workload workload = small_workload(model, Feeding::kDevice, device);
  const std::int64_t before = device->allocated;
  EXPECT_EQ(0, allocated_by([&] { workload.trainer.submit(kSteps); })) << model;
  // Beyond the vector of losses that it returns, run() allocates nothing for each step.
  workload.trainer.losses();
  const std::int64_t few = allocated_by([&] { workload.trainer.run(8); });
  EXPECT_GT(few, 0) << "nothing is counted";
  EXPECT_EQ(few, allocated_by([&] { workload.trainer.run(2 * kSteps); })) << model;
  EXPECT_EQ(device->allocated, before) << model;
}

// Prevents the compiler from removing an allocation that is freed without being used.
template <class T>
T* kept(T* memory) {
  T* volatile made = memory;
  return made;
}

TEST(Allocations, of_every_kind_are_counted) {
  TENSORGRAD_SKIP_WHERE_NOTHING_IS_COUNTED();
  struct alignas(64) Line {
    char bytes[64];
  };
  const auto counts = [](const auto& call) {
    const std::int64_t before = allocations();
    call();
    return allocations() - before;
  };
  EXPECT_EQ(1, counts([] { std::free(kept(std::malloc(100))); }));
  EXPECT_EQ(1, counts([] { std::free(kept(std::calloc(100, 1))); }));
  EXPECT_EQ(2, counts([] { std::free(kept(std::realloc(kept(std::malloc(10)), 100000))); }));
  EXPECT_EQ(1, counts([] { std::free(kept(std::aligned_alloc(64, 128))); }));
  EXPECT_EQ(1, counts([] {
              void* memory = nullptr;
              ASSERT_EQ(posix_memalign(&memory, 64, 128), 0);
              std::free(kept(memory));
            }));
  EXPECT_EQ(1, counts([] { delete kept(new int); }));
  EXPECT_EQ(1, counts([] { delete[] kept(new int[100]); }));
  EXPECT_EQ(1, counts([] { delete kept(new Line); }));
  EXPECT_EQ(1, counts([] { delete[] kept(new Line[2]); }));
}

TEST(Allocations, of_steps_on_cpu_are_zero) {
  TENSORGRAD_SKIP_WHERE_NOTHING_IS_COUNTED();
  const std::shared_ptr<Device> device = make_cpu_device({.threads = 2});
  for (const std::string& model : kSmallModels) expect_steps_allocate_nothing(model, device);
}

TEST(Allocations, of_queued_steps_on_cpu_are_zero) {
  TENSORGRAD_SKIP_WHERE_NOTHING_IS_COUNTED();
  const std::shared_ptr<Device> device = make_cpu_device({.threads = 2});
  for (const std::string& model : kSmallModels) expect_queued_steps_allocate_nothing(model, device);
}

#if defined(TENSORGRAD_IDLE_WEBGPU)
// Encodes with one thread and with several.
TEST(Allocations, of_steps_on_webgpu_are_zero) {
  TENSORGRAD_SKIP_WHERE_NOTHING_IS_COUNTED();
  for (const std::size_t encoders : {1, 3}) {
    const std::shared_ptr<Device> device = idle_device(encoders);
    for (const std::string& model : kSmallModels) expect_steps_allocate_nothing(model, device);
  }
}

TEST(Allocations, of_queued_steps_on_webgpu_are_zero) {
  TENSORGRAD_SKIP_WHERE_NOTHING_IS_COUNTED();
  for (const std::size_t encoders : {1, 3}) {
    const std::shared_ptr<Device> device = idle_device(encoders);
    for (const std::string& model : kSmallModels)
      expect_queued_steps_allocate_nothing(model, device);
  }
}
#endif

}  // namespace
}  // namespace tensorgrad::testing
