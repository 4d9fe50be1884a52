// SPDX-License-Identifier: MIT
// The Device interface of the CPU and the null device: buffers, copies, errors, several runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <thread>

#include "base/check.h"
#include "program_harness.h"

namespace tensorgrad::testing {
namespace {

// x += 1, in place.
LaunchBuilder counter(std::int64_t n) {
  LaunchBuilder b(MapLaunch{n}, "count");
  const int x = b.in_place(n);
  b.set(x, std::vector<float>(static_cast<std::size_t>(n), 0.0f));
  Scalar s(b.launch().body);
  const auto id = IndexMap::identity({n});
  b.launch().stores = {store_to(x, id, s.op(op_add(), {s.load(x, id), s.constant(1)}))};
  return b;
}

TEST(CpuDevice, info_names_backend_and_threads) {
  const auto device = make_cpu_device({.threads = 3});
  EXPECT_EQ(device->info().backend, "cpu");
  EXPECT_NE(device->info().name.find("3 threads"), std::string::npos);
  EXPECT_FALSE(device->info().software);
}

#if defined(__aarch64__)
TEST(CpuDevice, computes_with_neon_on_arm) {
  const std::string name = make_cpu_device({.threads = 1})->info().name;
  EXPECT_NE(name.find("NEON"), std::string::npos) << name;
  RecordProperty("device", name);
}
#elif defined(__wasm__)
TEST(CpuDevice, computes_with_vectors_on_webassembly) {
  const std::string name = make_cpu_device({.threads = 1})->info().name;
  EXPECT_NE(name.find("WASM"), std::string::npos) << name;
  RecordProperty("device", name);
}
#endif

TEST(CpuDevice, buffers_are_zero_and_copies_are_checked) {
  const auto device = make_cpu_device({.threads = 1});
  const BufferHandle b = device->alloc(256, "b");
  std::array<std::uint32_t, 64> words{};
  words.fill(9);
  device->wait(device->download(b, 0, std::as_writable_bytes(std::span(words))));
  for (const std::uint32_t w : words) EXPECT_EQ(w, 0u);
  const std::array<std::uint32_t, 2> two{1, 2};
  device->upload(b, 248, std::as_bytes(std::span(two)));
  EXPECT_THROW(device->upload(b, 252, std::as_bytes(std::span(two))), InternalError);
  device->free(b);
  EXPECT_THROW(device->free(b), InternalError);
  EXPECT_EQ(device->alloc(4, "again"), b) << "handles are used again";
}

TEST(CpuDevice, allocation_that_is_too_large_is_rejected_by_name) {
  const auto device = make_cpu_device({.threads = 1});
  try {
    device->alloc(std::int64_t{1} << 60, "huge");
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_NE(error.message().find("huge"), std::string::npos);
    EXPECT_NE(error.message().find("1152921504606846976"), std::string::npos);
  }
}

TEST(CpuDevice, runs_once_per_set_of_scalars_and_times_a_run_that_counts) {
  const auto device = make_cpu_device({.threads = 2});
  const LaunchBuilder b = counter(100);
  const std::vector<BufferHandle> handles = {device->alloc(512, "x")};
  const auto executable = device->prepare(b.program, handles);
  const std::vector<RuntimeScalars> rows(5, oracle_scalars());
  const Ticket ticket = device->run(*executable, rows);
  EXPECT_TRUE(device->done(ticket));
  EXPECT_EQ(device->profile(*executable, rows[0]).size(), 1u);
  std::array<float, 1> x{};
  device->wait(device->download(handles[0], 0, std::as_writable_bytes(std::span(x))));
  EXPECT_EQ(x[0], 6);
}

// Denormals are flushed on every thread of the run. On the calling thread, the mode ends with the
// run.
TEST(CpuDevice, denormals_are_zeros_in_a_run) {
  const std::int64_t n = 1 << 20;
  const float least = std::numeric_limits<float>::min();
  LaunchBuilder b(MapLaunch{n}, "halve");
  const int x = b.in_place(n);
  Scalar s(b.launch().body);
  const auto id = IndexMap::identity({n});
  b.launch().stores = {store_to(x, id, s.op(op_mul(), {s.load(x, id), s.constant(0.5F)}))};
  const auto device = make_cpu_device({.threads = 3});
  const std::vector<BufferHandle> handles = {device->alloc(b.program.buffers[0].bytes, "x")};
  const auto executable = device->prepare(b.program, handles);
  std::vector<float> values(static_cast<std::size_t>(n), least);
  device->upload(handles[0], 0, std::as_bytes(std::span(values)));
  device->wait(device->run(*executable, std::vector<RuntimeScalars>{oracle_scalars()}));
  device->wait(device->download(handles[0], 0, std::as_writable_bytes(std::span(values))));
  EXPECT_EQ(std::count(values.begin(), values.end(), 0.0F), n);
  volatile float here = least;
  here = here / 2;
  EXPECT_GT(here, 0.0F);
}

TEST(CpuDevice, may_be_called_from_many_threads) {
  const auto device = make_cpu_device({.threads = 2});
  const LaunchBuilder b = counter(50'000);
  const std::vector<BufferHandle> handles = {device->alloc(b.program.buffers[0].bytes, "x")};
  const auto executable = device->prepare(b.program, handles);
  {
    std::vector<std::jthread> callers;
    for (int t = 0; t < 4; ++t) {
      callers.emplace_back([&] {
        const RuntimeScalars row = oracle_scalars();
        for (int i = 0; i < 25; ++i) device->run(*executable, std::span(&row, 1));
      });
    }
  }
  std::array<float, 1> x{};
  device->wait(device->download(handles[0], 4 * 49'999, std::as_writable_bytes(std::span(x))));
  EXPECT_EQ(x[0], 100);
}

TEST(CpuDevice, launch_outside_its_binding_is_rejected) {
  LaunchBuilder b = counter(100);
  b.launch().name = "runaway";
  b.launch().body.accesses[0].map = {{View{{100}, {2}, 0, {}, {}}}};
  const auto device = make_cpu_device({.threads = 1});
  try {
    run_on(*device, b);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("runaway"), std::string::npos);
  }
}

TEST(NullDevice, computes_nothing) {
  const auto device = make_null_device({});
  const LaunchBuilder b = counter(100);
  const OracleBuffers result = run_on(*device, b);
  for (const std::uint32_t word : result[0]) EXPECT_EQ(word, 0u);
}

TEST(NullDevice, holds_programs_to_its_limits) {
  LaunchBuilder b(MapLaunch{}, "crowd");
  for (int i = 0; i < 9; ++i) b.input(4);
  EXPECT_THROW(run_on(*make_null_device({}), b), DeviceError);
  EXPECT_NO_THROW(run_on(*make_null_device({.max_storage_bindings = 9}), b));
  EXPECT_THROW(run_on(*make_null_device({.max_storage_bindings = 9, .max_binding_bytes = 128}), b),
               DeviceError);
  EXPECT_THROW(make_null_device({.max_buffer_bytes = 1024})->alloc(2048, "big"), DeviceError);
}

}  // namespace
}  // namespace tensorgrad::testing
