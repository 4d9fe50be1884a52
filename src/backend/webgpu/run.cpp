// SPDX-License-Identifier: MIT
// Running and timing programs. Encodes the launches of several steps into few compute passes and
// submits. WebGPU runs the dispatches of a pass in order if they access the same buffers.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "backend/webgpu/device.h"
#include "backend/webgpu/vendor.h"
#include "base/check.h"
#include "base/parallel.h"

namespace tensorgrad::webgpu {
namespace {

// A pass has an overhead of about 5 us. Kernels shorter than kShortMicroseconds are dispatched
// repeatedly in one pass, for about kTimedMicroseconds, if that does not change the result.
constexpr double kShortMicroseconds = 60, kTimedMicroseconds = 100;
constexpr double kMaxTimedRuns = 16;
constexpr std::size_t kQueriesAtOnce = 2048;  // timestamps; a query set has at most 4096

// True if a second run yields the same result.
bool may_run_again(const Step& step) {
  return std::none_of(step.bindings.begin(), step.bindings.end(),
                      [](const Binding& binding) { return binding.mode == BindMode::kReadWrite; });
}

}  // namespace

WebGpuExecutable& own(Executable& executable) {
  auto* mine = dynamic_cast<WebGpuExecutable*>(&executable);
  CHECK(mine != nullptr, "an executable of another backend");
  return *mine;
}

// Writes rows into the ring buffer and returns the index of the first. At most kMaxRuns - 1 runs
// may be in flight.
std::uint32_t WebGpuDevice::write_rows(std::span<const RuntimeScalars> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  if (ring_next_ + count > kRingRows) ring_next_ = 0;
  const std::int64_t first = ring_next_;
  ring_next_ += count;
  api_.QueueWriteBuffer(queue_.get(), ring_.get(),
                        static_cast<std::uint64_t>(first * kHyperRowBytes), rows.data(),
                        rows.size_bytes());
  return static_cast<std::uint32_t>(first);
}

// Encodes the steps once for each of `count` rows, in one pass.
Handle<WGPUCommandEncoder> WebGpuDevice::encode(std::span<const Step> steps, bool uses_hyper,
                                                std::uint32_t first_row, std::size_t count) {
  Handle<WGPUCommandEncoder> encoder(api_, api_.DeviceCreateCommandEncoder(device_.get(), nullptr));
  const Handle<WGPUComputePassEncoder> opened(
      api_, api_.CommandEncoderBeginComputePass(encoder.get(), nullptr));
  auto* const pass = opened.get();
  for (std::size_t i = 0; i < count; ++i) {
    if (uses_hyper) {
      const auto offset = static_cast<std::uint32_t>((first_row + i) * kHyperRowBytes);
      api_.ComputePassEncoderSetBindGroup(pass, 1, ring_group_.get(), 1, &offset);
    }
    for (const Step& step : steps) {
      api_.ComputePassEncoderSetPipeline(pass, step.pipeline->handle.get());
      api_.ComputePassEncoderSetBindGroup(pass, 0, step.group.get(), 0, nullptr);
      api_.ComputePassEncoderDispatchWorkgroups(pass, step.groups_x, step.groups_y, 1);
    }
  }
  api_.ComputePassEncoderEnd(pass);
  return encoder;
}

// Encodes and finishes command buffers, with several threads if there are many dispatches. Returns
// their number.
std::size_t WebGpuDevice::encode_together(const WebGpuExecutable& executable,
                                          std::span<const Step> steps, std::uint32_t first_row,
                                          std::size_t count, CommandBuffers& made) {
  const Stopwatch timer(host_.encoding);
  const bool several = api_.vendor->concurrent() && executable.validated;
  const std::size_t most =
      several ? std::min(count, steps.size() * count / kDispatchesPerEncoder) : 1;
  const std::size_t parts = std::clamp<std::size_t>(most, 1, encoders_);
  const auto encode_part = [&](std::size_t i) {
    const std::size_t from = count * i / parts, to = count * (i + 1) / parts;
    const Handle<WGPUCommandEncoder> encoder = encode(
        steps, executable.uses_hyper, first_row + static_cast<std::uint32_t>(from), to - from);
    made[i] = {api_, api_.CommandEncoderFinish(encoder.get(), nullptr)};
  };
  if (parts == 1) {
    encode_part(0);
  } else {
    crew_.run(parts, encode_part);
  }
  return parts;
}

void WebGpuDevice::run_chunk(WebGpuExecutable& executable, std::span<const RuntimeScalars> rows) {
  while (flights_.size() >= kMaxFlights || runs_in_flight() >= kMaxRuns) wait_oldest();
  const std::uint32_t first = executable.uses_hyper ? write_rows(rows) : 0;
  std::span<const Step> steps = executable.steps;
  // If the GPU is idle and the step is long, its beginning is submitted while the rest is encoded.
  const bool in_parts = rows.size() == 1 && executable.validated && runs_in_flight() == 0;
  for (std::size_t part = kFirstDispatches; in_parts && steps.size() >= part + part / 2;
       part *= 2) {
    CommandBuffers made;
    encode_together(executable, steps.first(part), first, 1, made);
    auto* const commands = made.front().get();
    watch(submit({&commands, 1}, false));
    steps = steps.subspan(part);
  }
  if (!executable.validated) begin_scope();
  CommandBuffers made;
  const std::size_t count = encode_together(executable, steps, first, rows.size(), made);
  // Must precede the submit: wgpu-native aborts if rejected commands are submitted.
  if (!executable.validated) check_first_run(executable);
  std::array<WGPUCommandBuffer, kMaxEncoders> commands = {};
  for (std::size_t i = 0; i < count; ++i) commands[i] = made[i].get();
  encoded_by_ = count;
  watch(submit(std::span(commands).first(count), true));
}

// Checks for errors of the driver's validation once, at the first run. Nothing it depends on
// changes afterwards.
void WebGpuDevice::check_first_run(WebGpuExecutable& executable) {
  const std::string error = end_scope();
  if (error.empty()) {
    executable.validated = true;
    return;
  }
  throw_faults();
  // The driver's message has the label of the pipeline or bind group, which is the launch name.
  const Step* blamed = nullptr;
  for (const Step& step : executable.steps) {
    const bool named = !step.name.empty() && error.find(step.name) != std::string::npos;
    if (named && (blamed == nullptr || step.name.size() > blamed->name.size())) blamed = &step;
  }
  const SourceLocation location = blamed == nullptr ? SourceLocation() : blamed->location;
  throw DeviceError("webgpu: " + (blamed == nullptr ? "a program" : "kernel " + blamed->name) +
                        " was rejected at run time: " + error,
                    location);
}

Ticket WebGpuDevice::run(Executable& any, std::span<const RuntimeScalars> rows) {
  const std::lock_guard lock(mutex_);
  WebGpuExecutable& executable = own(any);
  throw_faults();
  const auto launches = static_cast<std::int64_t>(executable.steps.size());
  if (launches == 0 || rows.empty()) return last_ticket_;
  if (submit_seconds_ > 0) {
    for (const RuntimeScalars& row : rows) run_limited(executable, row);
    return last_ticket_;
  }
  const auto steps_of = [&](std::int64_t dispatches) {
    return static_cast<std::size_t>(
        std::clamp<std::int64_t>(dispatches / launches, 1, kRowsPerSubmit));
  };
  for (std::size_t at = 0; at < rows.size();) {
    const std::size_t chunk = std::max(steps_of(kFirstDispatches), at);
    const std::size_t count = std::min({chunk, steps_of(kDispatchesPerSubmit), rows.size() - at});
    run_chunk(executable, rows.subspan(at, count));
    at += count;
  }
  return last_ticket_;
}

std::vector<LaunchTiming> WebGpuDevice::profile(Executable& any, const RuntimeScalars& row) {
  const std::lock_guard lock(mutex_);
  WebGpuExecutable& executable = own(any);
  throw_faults();
  wait_for(last_ticket_);
  std::vector<LaunchTiming> timings;
  if (timestamps_) timings = profile_by_query(executable, row);
  return timings.empty() ? profile_by_clock(executable, row) : timings;
}

// Returns null if the device claims to support timestamps but does not.
Handle<WGPUQuerySet> WebGpuDevice::make_queries(std::size_t count) {
  WGPUQuerySetDescriptor descriptor = {};
  descriptor.type = WGPUQueryType_Timestamp;
  descriptor.count = static_cast<std::uint32_t>(count);
  begin_scope();
  Handle<WGPUQuerySet> queries(api_, api_.DeviceCreateQuerySet(device_.get(), &descriptor));
  if (!end_scope().empty()) queries.reset();
  return queries;
}

// Encodes a pass that runs one launch `count` times.
void WebGpuDevice::encode_alone(WGPUCommandEncoder encoder, const Step& step, std::uint32_t row,
                                const WGPUPassTimestampWrites* writes, int count) {
  WGPUComputePassDescriptor descriptor = {};
  descriptor.timestampWrites = writes;
  const Handle<WGPUComputePassEncoder> pass(
      api_, api_.CommandEncoderBeginComputePass(encoder, &descriptor));
  if (step.uses_hyper) {
    const auto offset = static_cast<std::uint32_t>(row * kHyperRowBytes);
    api_.ComputePassEncoderSetBindGroup(pass.get(), 1, ring_group_.get(), 1, &offset);
  }
  api_.ComputePassEncoderSetPipeline(pass.get(), step.pipeline->handle.get());
  api_.ComputePassEncoderSetBindGroup(pass.get(), 0, step.group.get(), 0, nullptr);
  for (int i = 0; i < count; ++i)
    api_.ComputePassEncoderDispatchWorkgroups(pass.get(), step.groups_x, step.groups_y, 1);
  api_.ComputePassEncoderEnd(pass.get());
}

// Times each step from submit to completion, including the cost of the submit.
std::vector<LaunchTiming> WebGpuDevice::profile_by_clock(WebGpuExecutable& executable,
                                                         const RuntimeScalars& row) {
  using Clock = std::chrono::steady_clock;
  const std::uint32_t number = executable.uses_hyper ? write_rows({&row, 1}) : 0;
  std::vector<LaunchTiming> timings;
  for (const Step& step : executable.steps) {
    const Handle<WGPUCommandEncoder> encoder(
        api_, api_.DeviceCreateCommandEncoder(device_.get(), nullptr));
    encode_alone(encoder.get(), step, number, nullptr);
    const Clock::time_point start = Clock::now();
    watch(finish_and_submit(encoder.get(), true));
    wait_for(last_ticket_);
    timings.push_back({std::chrono::duration<double, std::micro>(Clock::now() - start).count()});
    timings.resize(timings.size() + step.launches - 1, {.concurrent = true});
  }
  return timings;
}

// Times one pass per step with a timestamp at each end. Returns an empty list if timestamps are not
// available.
std::vector<LaunchTiming> WebGpuDevice::profile_by_query(WebGpuExecutable& executable,
                                                         const RuntimeScalars& row) {
  const std::uint32_t number = executable.uses_hyper ? write_rows({&row, 1}) : 0;
  std::vector<LaunchTiming> timings;
  for (std::size_t at = 0; at < executable.steps.size(); at += kQueriesAtOnce) {
    const std::size_t count = std::min(kQueriesAtOnce, executable.steps.size() - at);
    const Handle<WGPUQuerySet> queries = make_queries(2 * count);
    if (!queries) return {};
    const auto bytes = static_cast<std::int64_t>(16 * count);
    const Handle<WGPUBuffer> resolved =
        create_buffer(bytes, WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc, "timestamps");
    const Handle<WGPUCommandEncoder> encoder(
        api_, api_.DeviceCreateCommandEncoder(device_.get(), nullptr));
    for (std::size_t i = 0; i < count; ++i) {
      WGPUPassTimestampWrites writes = {};
      writes.querySet = queries.get();
      writes.beginningOfPassWriteIndex = static_cast<std::uint32_t>(2 * i);
      writes.endOfPassWriteIndex = static_cast<std::uint32_t>(2 * i + 1);
      const Step& step = executable.steps[at + i];
      encode_alone(encoder.get(), step, number, &writes, step.timed_runs);
    }
    api_.CommandEncoderResolveQuerySet(encoder.get(), queries.get(), 0,
                                       static_cast<std::uint32_t>(2 * count), resolved.get(), 0);
    watch(finish_and_submit(encoder.get(), true));
    std::vector<std::uint64_t> ticks(2 * count);
    read_back(resolved.get(), std::as_writable_bytes(std::span(ticks)));
    const double period = api_.vendor->timestamp_period(queue_.get());
    for (std::size_t i = 0; i < count; ++i) {
      Step& step = executable.steps[at + i];
      const double span = static_cast<double>(ticks[2 * i + 1] - ticks[2 * i]);
      const double each = span * period / 1000.0 / step.timed_runs;
      timings.push_back({each, true});
      timings.resize(timings.size() + step.launches - 1, {.by_device = true, .concurrent = true});
      if (each < kShortMicroseconds && may_run_again(step))
        step.timed_runs = static_cast<int>(
            std::clamp(kTimedMicroseconds / std::max(each, 1.0), 1.0, kMaxTimedRuns));
    }
  }
  return timings;
}

// Copies an internal buffer to the host and waits for it.
void WebGpuDevice::read_back(WGPUBuffer source, std::span<std::byte> out) {
  const auto bytes = static_cast<std::int64_t>(out.size());
  std::int64_t capacity = 0;
  Handle<WGPUBuffer> staging = take_staging(bytes, capacity);
  const Handle<WGPUCommandEncoder> encoder(api_,
                                           api_.DeviceCreateCommandEncoder(device_.get(), nullptr));
  api_.CommandEncoderCopyBufferToBuffer(encoder.get(), source, 0, staging.get(), 0,
                                        static_cast<std::uint64_t>(bytes));
  Flight& flight = finish_and_submit(encoder.get(), false);
  flight.staging = std::move(staging);
  flight.staging_bytes = capacity;
  flight.out = out;
  map(flight, bytes);
  wait_for(flight.ticket);
}

}  // namespace tensorgrad::webgpu
