// SPDX-License-Identifier: MIT
// The queue of a WebGPU device: steps in one submit, rows of runtime scalars, in-place updates,
// order of uploads, runs and downloads, timings.
#include <bit>
#include <chrono>
#include <cmath>
#include <thread>

#include "webgpu_test_util.h"

namespace tensorgrad::testing {
namespace {

std::vector<RuntimeScalars> counting_rows(std::size_t count) {
  std::vector<RuntimeScalars> rows(count, oracle_scalars());
  for (std::size_t i = 0; i < count; ++i) {
    rows[i].words[2] = std::bit_cast<std::uint32_t>(0.5f + static_cast<float>(i % 17));
    rows[i].words[3] = static_cast<std::uint32_t>(i % 32);
  }
  return rows;
}

// x = x * keep + scalars[2] in place; then losses[scalars[3]] = sum(x).
TestProgram two_kernels(float keep = 0.5F) {
  TestProgram test;
  const int x = test.buffer(DType::kF32, 100), losses = test.buffer(DType::kF32, 32);
  {
    Launch& launch = test.launch(MapLaunch{100}, "update");
    test.bind(launch, x, BindMode::kReadWrite);
    ProgramMaker make;
    const int kept = make.op("mul", {make.load(0, whole({100})), make.constant(keep)});
    const int value = make.op("add", {kept, make.runtime_scalars(2)});
    launch.body = make.program;
    TestProgram::store(launch, 0, value, whole({100}));
  }
  Launch& launch = test.launch(RowLaunch{1, 100}, "loss");
  test.bind(launch, x, BindMode::kRead);
  test.bind(launch, losses, BindMode::kReadWrite);
  ProgramMaker make;
  const int sum = make.reduce(ReduceOp::kSum, make.load(0, whole({1, 100})));
  launch.body = make.program;
  TestProgram::store(launch, 1, sum, whole({1}), DType::kF32, Level::kRow, 3);
  return test;
}

TEST(WebGpuQueue, runs_many_steps_at_once_each_with_its_row) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test = two_kernels();
  test.check(*device, counting_rows(1));
  test.check(*device, counting_rows(50));
  test.check(*device, counting_rows(2500));  // more rows than the ring has, so several submits
}

TEST(WebGpuQueue, wraps_the_ring_of_runtime_scalars) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test = two_kernels();
  const std::vector<BufferHandle> handles = test.upload(*device);
  const auto executable = device->prepare(test.program, handles);
  const std::vector<RuntimeScalars> rows = counting_rows(1777);
  OracleBuffers want = test.contents;
  std::size_t at = 0;
  for (std::size_t count = 1; at < rows.size(); count = count * 2 % 301 + 1) {
    const std::size_t part = std::min(count, rows.size() - at);
    device->run(*executable, std::span(rows).subspan(at, part));
    at += part;
  }
  for (const RuntimeScalars& row : rows) run_oracle(test.program, want, row);
  for (int i = 0; i < 2; ++i) {
    const std::vector<std::uint32_t> got =
        test.download(*device, handles[static_cast<std::size_t>(i)], i);
    for (std::size_t e = 0; e < (i == 0 ? 100u : 32u); ++e) {
      EXPECT_NEAR(std::bit_cast<float>(got[e]),
                  std::bit_cast<float>(want[static_cast<std::size_t>(i)][e]), 0.05);
    }
  }
}

// Each thread encodes a part of the steps. They run in order, each with its row.
TEST(WebGpuQueue, encodes_long_runs_by_several_threads) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test = two_kernels();
  const std::vector<RuntimeScalars> rows = counting_rows(129);
  const bool by_threads = device->info().driver.find("wgpu-native") != std::string::npos;
  std::vector<std::vector<std::uint32_t>> results;
  for (const std::size_t threads : {1u, 2u}) {
    device->force_encoders(threads);
    const std::vector<BufferHandle> handles = test.upload(*device);
    const auto executable = device->prepare(test.program, handles);
    device->run(*executable, std::span(rows).first(1));  // the first run is validated
    EXPECT_EQ(device->encoded_by(), 1u);
    device->run(*executable, std::span(rows).subspan(1));
    EXPECT_EQ(device->encoded_by(), by_threads ? threads : 1u);
    device->run(*executable, std::span(rows).first(31));
    EXPECT_EQ(device->encoded_by(), 1u) << "62 dispatches are too few";
    results.push_back(test.download(*device, handles[0], 0));
    const std::vector<std::uint32_t> losses = test.download(*device, handles[1], 1);
    results.back().insert(results.back().end(), losses.begin(), losses.end());
    EXPECT_EQ(results.back(), results.front()) << threads;
  }
}

// A step of many launches is submitted in parts if the device is idle. Every launch uses the row of
// its step. The lengths end before, at and after the end of a part.
TEST(WebGpuQueue, runs_long_steps) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const int pairs : {31, 32, 47, 48, 150, 400}) {
    TestProgram test = two_kernels(1);  // counts its launches
    const std::vector<Launch> pair = test.program.launches;
    for (int i = 1; i < pairs; ++i)
      test.program.launches.insert(test.program.launches.end(), pair.begin(), pair.end());
    const std::vector<BufferHandle> handles = test.upload(*device);
    const auto executable = device->prepare(test.program, handles);
    OracleBuffers want = test.contents;
    for (const RuntimeScalars& row : counting_rows(5)) {
      device->run(*executable, std::span(&row, 1));
      run_oracle(test.program, want, row);
      const auto got = test.download(*device, handles[1], 1);  // waits until the device is idle
      for (std::size_t e = 0; e < 32; ++e) {
        const float sum = std::bit_cast<float>(want[1][e]);
        EXPECT_NEAR(std::bit_cast<float>(got[e]), sum, 1e-4F * std::abs(sum)) << pairs;
      }
    }
  }
}

TEST(WebGpuQueue, is_deterministic) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  const TestProgram test = two_kernels();
  std::vector<std::vector<std::uint32_t>> results;
  for (const std::size_t part : {40u, 7u}) {
    const std::vector<BufferHandle> handles = test.upload(*device);
    const auto executable = device->prepare(test.program, handles);
    const std::vector<RuntimeScalars> rows = counting_rows(280);
    for (std::size_t at = 0; at < rows.size(); at += part) {
      device->run(*executable, std::span(rows).subspan(at, part));
    }
    results.push_back(test.download(*device, handles[1], 1));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(WebGpuQueue, keeps_uploads_runs_and_downloads_in_order) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test;
  const int x = test.buffer(DType::kF32, 64), y = test.buffer(DType::kF32, 64);
  test.add_one("copy", x, y, 64);
  const std::vector<BufferHandle> handles = test.upload(*device);
  const auto executable = device->prepare(test.program, handles);
  const int rounds = 150;  // more than can be in flight
  std::vector<std::vector<float>> out(rounds, std::vector<float>(64));
  Ticket last = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::vector<float> in(64, static_cast<float>(i));
    device->upload(handles[0], 0, std::as_bytes(std::span(in)));
    device->run(*executable, std::vector<RuntimeScalars>{oracle_scalars()});
    last = device->download(handles[1], 0,
                            std::as_writable_bytes(std::span(out[static_cast<std::size_t>(i)])));
  }
  while (!device->done(last)) std::this_thread::yield();
  device->wait(last);
  for (int i = 0; i < rounds; ++i) {
    EXPECT_EQ(out[static_cast<std::size_t>(i)], std::vector<float>(64, static_cast<float>(i + 1)));
  }
}

TEST(WebGpuQueue, moves_parts_of_buffers) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  const BufferHandle buffer = device->alloc(1000, "parts");
  std::vector<std::uint32_t> zero(250, 7);
  device->wait(device->download(buffer, 0, std::as_writable_bytes(std::span(zero))));
  EXPECT_EQ(zero, std::vector<std::uint32_t>(250, 0));  // new buffers are zero
  const std::vector<std::uint32_t> three = {1, 2, 3};
  device->upload(buffer, 400, std::as_bytes(std::span(three)));
  std::vector<std::uint32_t> back(5);
  device->wait(device->download(buffer, 396, std::as_writable_bytes(std::span(back))));
  EXPECT_EQ(back, (std::vector<std::uint32_t>{0, 1, 2, 3, 0}));
  device->free(buffer);
  EXPECT_THROW(device->upload(buffer, 0, std::as_bytes(std::span(three))), InternalError);
}

TEST(WebGpuQueue, may_be_called_from_any_thread) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  const TestProgram test = two_kernels();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const std::vector<BufferHandle> handles = test.upload(*device);
      const auto executable = device->prepare(test.program, handles);
      for (int round = 0; round < 5; ++round) {
        device->wait(device->run(*executable, counting_rows(3)));
        EXPECT_FALSE(test.download(*device, handles[0], 0).empty());
      }
    });
  }
}

// Compares all buffers, which hold floats.
void expect_all_near(webgpu::WebGpuDevice& device, const TestProgram& test,
                     const std::vector<BufferHandle>& handles, const OracleBuffers& want) {
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const std::vector<std::uint32_t> got = test.download(device, handles[i], static_cast<int>(i));
    for (std::size_t e = 0; e < got.size(); ++e) {
      ASSERT_NEAR(std::bit_cast<float>(got[e]), std::bit_cast<float>(want[i][e]), 1e-4) << i;
    }
  }
}

TEST(WebGpuQueue, profiles_each_launch_and_the_run_counts) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  const TestProgram test = two_kernels();
  const std::vector<BufferHandle> handles = test.upload(*device);
  const auto executable = device->prepare(test.program, handles);
  const RuntimeScalars row = counting_rows(1)[0];
  const std::vector<LaunchTiming> timings = device->profile(*executable, row);
  ASSERT_EQ(timings.size(), 2u);
  for (const LaunchTiming& timing : timings) {
    EXPECT_GT(timing.microseconds, 0);
    EXPECT_LT(timing.microseconds, 1e6);
  }
  OracleBuffers want = test.contents;
  run_oracle(test.program, want, row);
  const std::vector<std::uint32_t> got = test.download(*device, handles[0], 0);
  EXPECT_NEAR(std::bit_cast<float>(got[5]), std::bit_cast<float>(want[0][5]), 1e-5);
}

// Short launches are repeated within a pass, except those that read what they write.
TEST(WebGpuQueue, repeated_profiles_count_as_steps) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test = two_kernels();
  const int in = test.buffer(DType::kF32, 300), out = test.buffer(DType::kF32, 300);
  test.add_one("one", in, out, 300);
  const std::vector<BufferHandle> handles = test.upload(*device);
  const auto executable = device->prepare(test.program, handles);
  OracleBuffers want = test.contents;
  for (const RuntimeScalars& row : counting_rows(5)) {
    for (const LaunchTiming& timing : device->profile(*executable, row))
      EXPECT_GT(timing.microseconds, 0);
    run_oracle(test.program, want, row);
  }
  expect_all_near(*device, test, handles, want);
}

// If the device has no timestamps, launches that are one kernel report its time once.
TEST(WebGpuQueue, profiles_each_launch_by_the_hosts_clock) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  device->force_host_clock();
  TestProgram test = two_kernels();
  const int in = test.buffer(DType::kF32, 300), out = test.buffer(DType::kF32, 300),
            other = test.buffer(DType::kF32, 300);
  test.add_one("one", in, out, 300);
  test.add_one("beside", in, other, 300);
  test.program.launches.back().concurrent = true;
  const std::vector<BufferHandle> handles = test.upload(*device);
  const auto executable = device->prepare(test.program, handles);
  const RuntimeScalars row = counting_rows(1)[0];
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const std::vector<LaunchTiming> timings = device->profile(*executable, row);
  const std::chrono::duration<double, std::micro> took = Clock::now() - start;
  ASSERT_EQ(timings.size(), 4u);
  double sum = 0;
  for (std::size_t i = 0; i < timings.size(); ++i) {
    EXPECT_FALSE(timings[i].by_device);
    EXPECT_EQ(timings[i].concurrent, i == 3);
    EXPECT_EQ(timings[i].microseconds > 0, i < 3);
    sum += timings[i].microseconds;
  }
  EXPECT_LE(sum, took.count());
  OracleBuffers want = test.contents;  // each has run once
  run_oracle(test.program, want, row);
  expect_all_near(*device, test, handles, want);
}

TEST(WebGpuQueue, equal_kernels_are_compiled_once) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test;
  std::vector<int> buffers;
  for (int i = 0; i < 5; ++i) buffers.push_back(test.buffer(DType::kF32, 64));
  for (std::size_t i = 0; i + 1 < buffers.size(); ++i) {
    Launch& launch = test.launch(MapLaunch{64}, "copy" + std::to_string(i));
    test.bind(launch, buffers[i], BindMode::kRead);
    test.bind(launch, buffers[i + 1], BindMode::kWrite);
    ProgramMaker make;
    const int value = make.load(0, whole({64}));
    launch.body = make.program;
    TestProgram::store(launch, 1, value, whole({64}));
  }
  const std::vector<BufferHandle> handles = test.upload(*device);
  const auto executable = device->prepare(test.program, handles);
  const auto& dispatches = dynamic_cast<webgpu::WebGpuExecutable&>(*executable).dispatches;
  for (const webgpu::BoundDispatch& dispatch : dispatches)
    EXPECT_EQ(dispatch.pipeline, dispatches[0].pipeline);
  device->run(*executable, std::vector<RuntimeScalars>{oracle_scalars()});
  std::vector<std::uint32_t> want = test.contents[0];
  EXPECT_EQ(test.download(*device, handles[4], 4), want);
}

}  // namespace
}  // namespace tensorgrad::testing
