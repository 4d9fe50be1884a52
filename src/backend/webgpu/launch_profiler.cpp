// SPDX-License-Identifier: MIT
#include "backend/webgpu/launch_profiler.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "backend/webgpu/runner.h"
#include "backend/webgpu/vendor.h"

namespace tensorgrad::webgpu {
namespace {

// A pass has an overhead of about 5 us. Kernels shorter than kShortMicroseconds are dispatched
// repeatedly in one pass, for about kTimedMicroseconds, if that does not change the result. How
// much longer one dispatch took in a pass of its own is subtracted from the times of the others.
constexpr double kShortMicroseconds = 60, kTimedMicroseconds = 100;
constexpr double kMaxTimedRuns = 16;
constexpr std::size_t kQueriesAtOnce = 2048;  // timestamps; a query set has at most 4096

// True if a second run yields the same result.
bool may_run_again(const BoundDispatch& dispatch) {
  return std::none_of(dispatch.bindings.begin(), dispatch.bindings.end(),
                      [](const Binding& binding) { return binding.mode == BindMode::kReadWrite; });
}

}  // namespace

std::vector<LaunchTiming> LaunchProfiler::profile(WebGpuExecutable& executable,
                                                  const RuntimeScalars& row) {
  queue_.wait_for_all();
  const std::uint32_t number = executable.uses_scalars ? queue_.write_rows({&row, 1}) : 0;
  std::vector<LaunchTiming> timings;
  if (timestamps_) timings = profile_by_query(executable, number);
  return timings.empty() ? profile_by_clock(executable, number) : timings;
}

Handle<WGPUBuffer> LaunchProfiler::create_ticks(std::size_t count) {
  return queue_.create_buffer(static_cast<std::int64_t>(count * sizeof(std::uint64_t)),
                              WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc, "timestamps");
}

double LaunchProfiler::microseconds(std::uint64_t ticks) const {
  return static_cast<double>(ticks) * api_.vendor->timestamp_period(queue_.native()) / 1000.0;
}

// Returns null if the device claims to support timestamps but does not.
Handle<WGPUQuerySet> LaunchProfiler::create_queries(std::size_t count) {
  WGPUQuerySetDescriptor descriptor = {};
  descriptor.type = WGPUQueryType_Timestamp;
  descriptor.count = static_cast<std::uint32_t>(count);
  queue_.begin_scope();
  Handle<WGPUQuerySet> queries(api_, api_.DeviceCreateQuerySet(queue_.device(), &descriptor));
  if (!queue_.end_scope().empty()) queries.reset();
  return queries;
}

// Encodes a pass that runs one launch `count` times.
void LaunchProfiler::encode_repeated(WGPUCommandEncoder encoder, const BoundDispatch& dispatch,
                                     std::uint32_t row, const WGPUPassTimestampWrites* writes,
                                     int count) {
  WGPUComputePassDescriptor descriptor = {};
  descriptor.timestampWrites = writes;
  const Handle<WGPUComputePassEncoder> pass(
      api_, api_.CommandEncoderBeginComputePass(encoder, &descriptor));
  if (dispatch.uses_scalars) queue_.bind_row(pass.get(), row);
  api_.ComputePassEncoderSetPipeline(pass.get(), dispatch.pipeline->handle.get());
  api_.ComputePassEncoderSetBindGroup(pass.get(), 0, dispatch.group.handle.get(), 0, nullptr);
  for (int i = 0; i < count; ++i)
    api_.ComputePassEncoderDispatchWorkgroups(pass.get(), dispatch.groups_x, dispatch.groups_y, 1);
  api_.ComputePassEncoderEnd(pass.get());
}

// Times each dispatch from submit to completion, including the cost of the submit.
std::vector<LaunchTiming> LaunchProfiler::profile_by_clock(const WebGpuExecutable& executable,
                                                           std::uint32_t row) {
  using Clock = std::chrono::steady_clock;
  std::vector<LaunchTiming> timings;
  for (const BoundDispatch& dispatch : executable.dispatches) {
    const Handle<WGPUCommandEncoder> encoder = queue_.create_encoder();
    encode_repeated(encoder.get(), dispatch, row, nullptr);
    const Clock::time_point start = Clock::now();
    queue_.finish_and_submit(encoder.get(), true);
    queue_.wait_for_all();
    timings.push_back({std::chrono::duration<double, std::micro>(Clock::now() - start).count()});
    timings.resize(timings.size() + dispatch.launches - 1, {.concurrent = true});
  }
  return timings;
}

// Times one pass per dispatch with a timestamp at each end. Returns an empty list if timestamps are
// not available.
std::vector<LaunchTiming> LaunchProfiler::profile_by_query(WebGpuExecutable& executable,
                                                           std::uint32_t row) {
  std::vector<LaunchTiming> timings;
  std::vector<std::size_t> dispatched_once;  // among the timings
  std::vector<double> overheads;
  for (std::size_t at = 0; at < executable.dispatches.size(); at += kQueriesAtOnce) {
    const std::size_t count = std::min(kQueriesAtOnce, executable.dispatches.size() - at);
    const Handle<WGPUQuerySet> queries = create_queries(2 * count);
    if (!queries) return {};
    const Handle<WGPUBuffer> resolved = create_ticks(2 * count);
    const Handle<WGPUCommandEncoder> encoder = queue_.create_encoder();
    for (std::size_t i = 0; i < count; ++i) {
      WGPUPassTimestampWrites writes = {};
      writes.querySet = queries.get();
      writes.beginningOfPassWriteIndex = static_cast<std::uint32_t>(2 * i);
      writes.endOfPassWriteIndex = static_cast<std::uint32_t>(2 * i + 1);
      const BoundDispatch& dispatch = executable.dispatches[at + i];
      encode_repeated(encoder.get(), dispatch, row, &writes, dispatch.timed_runs);
    }
    api_.CommandEncoderResolveQuerySet(encoder.get(), queries.get(), 0,
                                       static_cast<std::uint32_t>(2 * count), resolved.get(), 0);
    queue_.finish_and_submit(encoder.get(), true);
    std::vector<std::uint64_t> ticks(2 * count);
    queue_.read_back(resolved.get(), std::as_writable_bytes(std::span(ticks)));
    for (std::size_t i = 0; i < count; ++i) {
      BoundDispatch& dispatch = executable.dispatches[at + i];
      const double each = microseconds(ticks[2 * i + 1] - ticks[2 * i]) / dispatch.timed_runs;
      if (dispatch.timed_runs > 1) {
        const double runs = dispatch.timed_runs;
        overheads.push_back((dispatch.once - each) * runs / (runs - 1));
      } else {
        dispatched_once.push_back(timings.size());
      }
      timings.push_back({each, true});
      timings.resize(timings.size() + dispatch.launches - 1,
                     {.by_device = true, .concurrent = true});
      if (dispatch.timed_runs > 1 || each >= kShortMicroseconds || !may_run_again(dispatch))
        continue;
      dispatch.once = each;
      dispatch.timed_runs = static_cast<int>(
          std::clamp(kTimedMicroseconds / std::max(each, 1.0), 1.0, kMaxTimedRuns));
    }
  }
  if (overheads.empty()) return timings;
  const auto middle = overheads.begin() + static_cast<std::ptrdiff_t>(overheads.size() / 2);
  std::nth_element(overheads.begin(), middle, overheads.end());
  for (const std::size_t number : dispatched_once) {
    double& time = timings[number].microseconds;
    time = std::clamp(time - *middle, 0.0, time);
  }
  return timings;
}

double LaunchProfiler::time_runs(const BoundDispatch& dispatch, std::uint32_t row, int count) {
  using Clock = std::chrono::steady_clock;
  const Handle<WGPUQuerySet> queries = timestamps_ ? create_queries(2) : Handle<WGPUQuerySet>();
  std::array<std::uint64_t, 2> ticks = {};
  Handle<WGPUBuffer> resolved;
  WGPUPassTimestampWrites writes = {};
  if (queries) {
    resolved = create_ticks(2);
    writes.querySet = queries.get();
    writes.endOfPassWriteIndex = 1;
  }
  queue_.begin_scope();
  const Handle<WGPUCommandEncoder> encoder = queue_.create_encoder();
  encode_repeated(encoder.get(), dispatch, row, queries ? &writes : nullptr, count);
  if (queries)
    api_.CommandEncoderResolveQuerySet(encoder.get(), queries.get(), 0, 2, resolved.get(), 0);
  const Handle<WGPUCommandBuffer> commands(api_, api_.CommandEncoderFinish(encoder.get(), nullptr));
  const std::string error = queue_.end_scope();
  if (!error.empty()) throw DeviceError("webgpu: " + dispatch.name + " was rejected: " + error);
  const Clock::time_point start = Clock::now();
  auto* const buffer = commands.get();
  queue_.submit({&buffer, 1}, true);
  queue_.wait_for_all();
  const double by_clock = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  if (queries) queue_.read_back(resolved.get(), std::as_writable_bytes(std::span(ticks)));
  if (ticks[1] <= ticks[0]) return by_clock / count;
  return microseconds(ticks[1] - ticks[0]) / count;
}

}  // namespace tensorgrad::webgpu
