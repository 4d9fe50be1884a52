// SPDX-License-Identifier: MIT
// Runs executables: encodes their dispatches into command buffers and cuts runs into submits.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <span>

#include "backend/webgpu/executable.h"
#include "backend/webgpu/submit_queue.h"
#include "base/parallel.h"

namespace tensorgrad::webgpu {

// Encoding a dispatch costs the host about as much as a small kernel costs the GPU. To overlap
// both, the first submit of many dispatches, or of a long one, is small. Each later one is as large
// as all previous ones together.
inline constexpr std::int64_t kFirstDispatches = 64;
inline constexpr std::int64_t kDispatchesPerSubmit = 1024;
// Dispatches of a submit per encoder thread, for up to kMaxEncoders threads, if the driver is
// thread-safe.
inline constexpr std::size_t kDispatchesPerEncoder = 64;
inline constexpr std::size_t kMaxEncoders = 4;

// Consecutive runs of an executable.
struct Runs {
  std::uint32_t row = 0;      // of the first run's scalars in the ring buffer
  bool uses_scalars = false;  // false: there are no rows
  std::size_t number = 0;     // of the first run, which selects its set of buffers
  std::size_t sets = 1;
  std::size_t count = 1;
};

// Encodes the dispatches once for each run, in one pass.
Handle<WGPUCommandEncoder> encode_dispatches(const SubmitQueue& queue,
                                             std::span<const BoundDispatch> dispatches,
                                             const Runs& runs);

// An executable is validated before its commands are submitted: in an error scope, at its first
// run. With a maximum duration of a submit, no submit takes longer, unless a single kernel does.
//
// Lock: callers hold the mutex of the WebGpuDevice. The encoder threads of encode_together() call
// only const functions, and return before it does.
class Runner {
 public:
  // `submit_milliseconds` is the maximum duration of a submit; 0: unlimited.
  Runner(SubmitQueue& queue, double submit_milliseconds)
      : queue_(queue), submit_seconds_(submit_milliseconds / 1000) {}

  // See WebGpuDevice.
  void force_encoders(std::size_t threads) { encoders_ = threads; }
  [[nodiscard]] std::size_t encoded_by() const { return encoded_by_; }

  // These are as in Device.
  Ticket run(WebGpuExecutable& executable, std::span<const RuntimeScalars> rows);
  std::size_t run_some(WebGpuExecutable& executable, const RuntimeScalars& row, std::size_t first,
                       std::size_t end, std::chrono::duration<double> budget);

  // True if the options allow run_part().
  [[nodiscard]] bool can_submit_parts() const { return submit_seconds_ == 0; }
  Ticket run_part(WebGpuExecutable& executable, const RuntimeScalars& row, std::size_t first,
                  std::size_t end);

  // The parts of Device::run_replacing(). True if the library and the options allow it.
  [[nodiscard]] bool can_replace() const {
    return can_submit_parts() && api_.BufferGetMappedRange != nullptr;
  }
  // Submits the launches before `resume`, and after those of each range a copy to its staging
  // buffer. Does not wait for them.
  void begin_replacing(WebGpuExecutable& executable, const RuntimeScalars& row, WGPUBuffer buffer,
                       std::span<const HostRange> ranges, std::size_t resume);
  // Waits for the staging buffers of a range and returns their memory, valid until the range is
  // uploaded.
  struct MappedRange {
    std::span<const std::byte> old;
    std::span<std::byte> fresh;
  };
  MappedRange wait_for_range(WebGpuExecutable& executable, std::size_t range);
  // Submits the copy of the new contents.
  void upload_range(WebGpuExecutable& executable, WGPUBuffer buffer, const HostRange& range,
                    std::size_t number);
  // Submits the launches from `resume` on.
  Ticket end_replacing(WebGpuExecutable& executable, const RuntimeScalars& row, std::size_t resume);

 private:
  using CommandBuffers = std::array<Handle<WGPUCommandBuffer>, kMaxEncoders>;

  std::size_t encode_together(const WebGpuExecutable& executable,
                              std::span<const BoundDispatch> dispatches, const Runs& runs,
                              CommandBuffers& made);
  void submit_dispatches(const WebGpuExecutable& executable, std::size_t at, std::size_t count,
                         const Runs& run, bool is_run);
  Runs write_rows(const WebGpuExecutable& executable, std::span<const RuntimeScalars> rows,
                  std::size_t number);
  void run_chunk(WebGpuExecutable& executable, std::span<const RuntimeScalars> rows,
                 std::size_t number);
  void check_first_run(WebGpuExecutable& executable);
  void check_unrun(WebGpuExecutable& executable);
  void run_timed(WebGpuExecutable& executable, std::size_t at, const Runs& run);
  void make_staging(WebGpuExecutable& executable, std::span<const HostRange> ranges);
  void submit_in_parts(const WebGpuExecutable& executable, std::size_t first, std::size_t end,
                       const Runs& run);
  void run_limited(WebGpuExecutable& executable, std::span<const RuntimeScalars> row,
                   std::size_t number);

  SubmitQueue& queue_;
  const Api& api_ = queue_.api();
  const double submit_seconds_;
  std::size_t encoders_ =
      std::min<std::size_t>(kMaxEncoders, static_cast<std::size_t>(usable_cores()));
  ThreadGroup threads_;  // the encoder threads
  std::size_t encoded_by_ = 0;
};

}  // namespace tensorgrad::webgpu
