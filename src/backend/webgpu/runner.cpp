// SPDX-License-Identifier: MIT
// Encodes the launches of several steps into few compute passes and submits. WebGPU runs the
// dispatches of a pass in order if they access the same buffers. Splits runs by time: into submits
// of a maximum duration, and into calls with a time budget. Both use the last measured time of each
// kernel, from submit to completion.
#include "backend/webgpu/runner.h"

#include "backend/webgpu/vendor.h"
#include "base/check.h"

namespace tensorgrad::webgpu {
namespace {

using HostClock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kRunsPerTiming = 256;  // retime: GPU clocks and the load from other processes change

// Returns how many kernels from `at` on fit into `seconds`; at least one.
std::size_t count_fitting(const WebGpuExecutable& executable, std::size_t at, double seconds) {
  Seconds sum{0};
  std::size_t end = at;
  for (; end < executable.dispatches.size(); ++end) {
    sum += executable.dispatches[end].took;
    if (sum.count() > seconds) break;
  }
  return std::max<std::size_t>(end - at, 1);
}

// Encodes the dispatches of one run. `bind_group` returns the bind group of a dispatch.
template <class GroupOf>
void encode_run(const Api& api, WGPUComputePassEncoder pass,
                std::span<const BoundDispatch> dispatches, const GroupOf& bind_group) {
  for (const BoundDispatch& dispatch : dispatches) {
    api.ComputePassEncoderSetPipeline(pass, dispatch.pipeline->handle.get());
    api.ComputePassEncoderSetBindGroup(pass, 0, bind_group(dispatch), 0, nullptr);
    api.ComputePassEncoderDispatchWorkgroups(pass, dispatch.groups_x, dispatch.groups_y, 1);
  }
}

}  // namespace

Handle<WGPUCommandEncoder> encode_dispatches(const SubmitQueue& queue,
                                             std::span<const BoundDispatch> dispatches,
                                             const Runs& runs) {
  const Api& api = queue.api();
  Handle<WGPUCommandEncoder> encoder = queue.create_encoder();
  const Handle<WGPUComputePassEncoder> pass(
      api, api.CommandEncoderBeginComputePass(encoder.get(), nullptr));
  for (std::size_t i = 0; i < runs.count; ++i) {
    if (runs.uses_scalars) queue.bind_row(pass.get(), runs.row + i);
    if (const std::size_t set = (runs.number + i) % runs.sets; set == 0) {
      encode_run(api, pass.get(), dispatches,
                 [](const BoundDispatch& dispatch) { return dispatch.group.handle.get(); });
    } else {
      encode_run(api, pass.get(), dispatches,
                 [&](const BoundDispatch& dispatch) { return dispatch.bind_group(set); });
    }
  }
  api.ComputePassEncoderEnd(pass.get());
  return encoder;
}

// Encodes and finishes command buffers, with several threads if there are many dispatches. Returns
// their number.
std::size_t Runner::encode_together(const WebGpuExecutable& executable,
                                    std::span<const BoundDispatch> dispatches, const Runs& runs,
                                    CommandBuffers& made) {
  const Stopwatch timer = queue_.time_encoding();
  const bool several = api_.vendor->concurrent() && executable.validated;
  const std::size_t count = runs.count;
  const std::size_t most =
      several ? std::min(count, dispatches.size() * count / kDispatchesPerEncoder) : 1;
  const std::size_t parts = std::clamp<std::size_t>(most, 1, encoders_);
  const auto encode_part = [&](std::size_t i) {
    const std::size_t from = count * i / parts, to = count * (i + 1) / parts;
    Runs part = runs;
    part.row += static_cast<std::uint32_t>(from);
    part.number += from;
    part.count = to - from;
    const Handle<WGPUCommandEncoder> encoder = encode_dispatches(queue_, dispatches, part);
    made[i] = {api_, api_.CommandEncoderFinish(encoder.get(), nullptr)};
  };
  if (parts == 1) {
    encode_part(0);
  } else {
    threads_.run(parts, encode_part);
  }
  return parts;
}

// Submits `count` kernels of one run, starting at `at`, in one submit. Does not wait.
void Runner::submit_dispatches(const WebGpuExecutable& executable, std::size_t at,
                               std::size_t count, const Runs& run, bool is_run) {
  CommandBuffers made;
  encode_together(executable, std::span(executable.dispatches).subspan(at, count), run, made);
  auto* const commands = made.front().get();
  queue_.submit({&commands, 1}, is_run);
}

// Writes the scalars of runs `number`, `number` + 1, ...
Runs Runner::write_rows(const WebGpuExecutable& executable, std::span<const RuntimeScalars> rows,
                        std::size_t number) {
  return {.row = executable.uses_scalars ? queue_.write_rows(rows) : 0,
          .uses_scalars = executable.uses_scalars,
          .number = number,
          .sets = executable.sets,
          .count = rows.size()};
}

void Runner::run_chunk(WebGpuExecutable& executable, std::span<const RuntimeScalars> rows,
                       std::size_t number) {
  queue_.make_room(true);
  const Runs runs = write_rows(executable, rows, number);
  std::span<const BoundDispatch> dispatches = executable.dispatches;
  // If the GPU is idle and the step is long, its beginning is submitted while the rest is
  // encoded.
  const bool in_parts = rows.size() == 1 && executable.validated && queue_.runs_in_flight() == 0;
  for (std::size_t part = kFirstDispatches; in_parts && dispatches.size() >= part + part / 2;
       part *= 2) {
    submit_dispatches(executable, executable.dispatches.size() - dispatches.size(), part, runs,
                      false);
    dispatches = dispatches.subspan(part);
  }
  if (!executable.validated) queue_.begin_scope();
  CommandBuffers made;
  const std::size_t count = encode_together(executable, dispatches, runs, made);
  // Must precede the submit: wgpu-native aborts if rejected commands are submitted.
  if (!executable.validated) check_first_run(executable);
  std::array<WGPUCommandBuffer, kMaxEncoders> commands = {};
  for (std::size_t i = 0; i < count; ++i) commands[i] = made[i].get();
  encoded_by_ = count;
  queue_.submit(std::span(commands).first(count), true);
}

// Checks for errors of the driver's validation once, at the first run with these bind groups.
// Nothing else that it depends on changes afterwards.
void Runner::check_first_run(WebGpuExecutable& executable) {
  const std::string error = queue_.end_scope();
  if (error.empty()) {
    for (BoundDispatch& dispatch : executable.dispatches) dispatch.group.validated = true;
    executable.validated = true;
    return;
  }
  queue_.throw_faults();
  // The driver's message has the label of the pipeline or bind group, which is the launch name.
  const BoundDispatch* blamed = nullptr;
  for (const BoundDispatch& dispatch : executable.dispatches) {
    const bool named = !dispatch.name.empty() && error.find(dispatch.name) != std::string::npos;
    if (named && (blamed == nullptr || dispatch.name.size() > blamed->name.size()))
      blamed = &dispatch;
  }
  const SourceLocation location = blamed == nullptr ? SourceLocation() : blamed->location;
  throw DeviceError("webgpu: " + (blamed == nullptr ? "a program" : "kernel " + blamed->name) +
                        " was rejected at run time: " + error,
                    location);
}

Ticket Runner::run(WebGpuExecutable& executable, std::span<const RuntimeScalars> rows) {
  const auto launches = static_cast<std::int64_t>(executable.dispatches.size());
  if (launches == 0 || rows.empty()) return queue_.last_ticket();
  if (submit_seconds_ > 0) {
    for (std::size_t i = 0; i < rows.size(); ++i) run_limited(executable, rows.subspan(i, 1), i);
    return queue_.last_ticket();
  }
  const auto steps_of = [&](std::int64_t dispatches) {
    return static_cast<std::size_t>(
        std::clamp<std::int64_t>(dispatches / launches, 1, kRowsPerSubmit));
  };
  for (std::size_t at = 0; at < rows.size();) {
    const std::size_t chunk = std::max(steps_of(kFirstDispatches), at);
    const std::size_t count = std::min({chunk, steps_of(kDispatchesPerSubmit), rows.size() - at});
    run_chunk(executable, rows.subspan(at, count), at);
    at += count;
  }
  return queue_.last_ticket();
}

// Runs one kernel and records its time on the host clock.
void Runner::run_timed(WebGpuExecutable& executable, std::size_t at, const Runs& run) {
  const HostClock::time_point start = HostClock::now();
  submit_dispatches(executable, at, 1, run, true);
  queue_.wait_for_all();
  executable.dispatches[at].took = HostClock::now() - start;
}

// Lets the driver validate a program that has not run yet.
void Runner::check_unrun(WebGpuExecutable& executable) {
  if (executable.validated) return;
  queue_.begin_scope();
  CommandBuffers unused;
  encode_together(executable, executable.dispatches, {.uses_scalars = executable.uses_scalars},
                  unused);
  check_first_run(executable);
}

void Runner::run_limited(WebGpuExecutable& executable, std::span<const RuntimeScalars> row,
                         std::size_t number) {
  check_unrun(executable);
  const bool timed = executable.limited_runs++ % kRunsPerTiming == 0;
  if (timed) queue_.wait_for_all();  // excludes previous work from the timing
  queue_.make_room(true);
  const Runs run = write_rows(executable, row, number);
  const std::size_t all = executable.dispatches.size();
  for (std::size_t at = 0; at < all;) {
    const std::size_t count = timed ? 1 : count_fitting(executable, at, submit_seconds_);
    queue_.make_room(false);
    if (timed) {
      run_timed(executable, at, run);
    } else {
      submit_dispatches(executable, at, count, run, at + count == all);
    }
    at += count;
  }
}

std::size_t Runner::run_some(WebGpuExecutable& executable, const RuntimeScalars& row,
                             std::size_t first, std::size_t end, Seconds budget) {
  std::size_t at = 0, launch = 0;
  for (; launch < first; ++at) launch += executable.dispatches[at].launches;
  if (executable.dispatches.empty()) return 0;
  check_unrun(executable);
  queue_.wait_for_all();
  const Runs run = write_rows(executable, {&row, 1}, 0);
  const HostClock::time_point start = HostClock::now();
  const double most = submit_seconds_ > 0 ? submit_seconds_ : budget.count();
  while (at < executable.dispatches.size() && launch < end) {
    const double left = (budget - Seconds(HostClock::now() - start)).count();
    const bool known = executable.dispatches[at].took.count() > 0;
    // The first kernel always runs. Further ones run if their known time fits, or, if it is
    // unknown, while any time is left.
    if (launch > first && (left <= 0 || executable.dispatches[at].took.count() > left)) break;
    if (known) {
      const std::size_t fitting = count_fitting(executable, at, std::min(left, most));
      std::size_t count = 0;
      for (; count < fitting && launch < end; ++count)
        launch += executable.dispatches[at + count].launches;
      submit_dispatches(executable, at, count, run, true);
      queue_.wait_for_all();
      at += count;
    } else {
      run_timed(executable, at, run);
      launch += executable.dispatches[at++].launches;
    }
  }
  return at == executable.dispatches.size() ? 0 : launch;
}

}  // namespace tensorgrad::webgpu
