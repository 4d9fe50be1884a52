// SPDX-License-Identifier: MIT
// Times launches: by timestamps of the GPU or, without them, by the host's clock.
#pragma once

#include <vector>

#include "backend/webgpu/executable.h"
#include "backend/webgpu/submit_queue.h"

namespace tensorgrad::webgpu {

// Each launch, or each repetition of one, has a pass of its own, and no other work is in flight.
//
// Lock: callers hold the mutex of the WebGpuDevice.
class LaunchProfiler {
 public:
  LaunchProfiler(SubmitQueue& queue, bool timestamps) : queue_(queue), timestamps_(timestamps) {}

  // For tests: times kernels by the host clock, as on devices without timestamps.
  void force_host_clock() { timestamps_ = false; }

  // Runs the program and returns the time of each launch.
  std::vector<LaunchTiming> profile(WebGpuExecutable& executable, const RuntimeScalars& row);
  // Returns the microseconds per run of `count` runs in one pass. Throws DeviceError if the driver
  // rejects them.
  double time_runs(const BoundDispatch& dispatch, std::uint32_t row, int count);

 private:
  std::vector<LaunchTiming> profile_by_clock(const WebGpuExecutable& executable, std::uint32_t row);
  std::vector<LaunchTiming> profile_by_query(WebGpuExecutable& executable, std::uint32_t row);
  Handle<WGPUQuerySet> create_queries(std::size_t count);
  Handle<WGPUBuffer> create_ticks(std::size_t count);
  void encode_repeated(WGPUCommandEncoder encoder, const BoundDispatch& dispatch, std::uint32_t row,
                       const WGPUPassTimestampWrites* writes, int count = 1);
  [[nodiscard]] double microseconds(std::uint64_t ticks) const;

  SubmitQueue& queue_;
  const Api& api_ = queue_.api();
  bool timestamps_;
};

}  // namespace tensorgrad::webgpu
