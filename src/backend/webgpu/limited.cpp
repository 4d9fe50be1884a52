// SPDX-License-Identifier: MIT
// Splits runs by time: into submits of a maximum duration, and into calls with a time budget. Both
// use the last measured time of each kernel, from submit to completion.
#include <algorithm>
#include <chrono>

#include "backend/webgpu/device.h"

namespace tensorgrad::webgpu {
namespace {

using HostClock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kRunsPerTiming = 256;  // retime: GPU clocks and the load from other processes change

}  // namespace

// Submits `count` kernels of the step, starting at `at`, in one submit. Does not wait.
void WebGpuDevice::submit_steps(const WebGpuExecutable& executable, std::size_t at,
                                std::size_t count, std::uint32_t row, bool is_run) {
  while (flights_.size() >= kMaxFlights) wait_oldest();
  CommandBuffers made;
  encode_together(executable, std::span(executable.steps).subspan(at, count), row, 1, made);
  auto* const commands = made.front().get();
  watch(submit({&commands, 1}, is_run));
}

// Runs one kernel and records its time on the host clock.
void WebGpuDevice::run_timed(WebGpuExecutable& executable, std::size_t at, std::uint32_t row) {
  const HostClock::time_point start = HostClock::now();
  submit_steps(executable, at, 1, row, true);
  wait_for(last_ticket_);
  executable.steps[at].took = HostClock::now() - start;
}

// Returns how many kernels from `at` on fit into `seconds`; at least one.
std::size_t WebGpuDevice::count_fitting(const WebGpuExecutable& executable, std::size_t at,
                                        double seconds) {
  Seconds sum{0};
  std::size_t end = at;
  for (; end < executable.steps.size(); ++end) {
    sum += executable.steps[end].took;
    if (sum.count() > seconds) break;
  }
  return std::max<std::size_t>(end - at, 1);
}

// Lets the driver validate a program that has not run yet.
void WebGpuDevice::check_unrun(WebGpuExecutable& executable) {
  if (executable.validated) return;
  begin_scope();
  CommandBuffers unused;
  encode_together(executable, executable.steps, 0, 1, unused);
  check_first_run(executable);
}

void WebGpuDevice::run_limited(WebGpuExecutable& executable, const RuntimeScalars& row) {
  check_unrun(executable);
  const bool timed = executable.limited_runs++ % kRunsPerTiming == 0;
  if (timed) wait_for(last_ticket_);  // excludes previous work from the timing
  while (runs_in_flight() >= kMaxRuns) wait_oldest();
  const std::uint32_t number = executable.uses_hyper ? write_rows({&row, 1}) : 0;
  const std::size_t all = executable.steps.size();
  for (std::size_t at = 0; at < all;) {
    const std::size_t count = timed ? 1 : count_fitting(executable, at, submit_seconds_);
    if (timed) {
      run_timed(executable, at, number);
    } else {
      submit_steps(executable, at, count, number, at + count == all);
    }
    at += count;
  }
}

std::size_t WebGpuDevice::run_some(Executable& any, const RuntimeScalars& row, std::size_t first,
                                   Seconds budget) {
  const std::lock_guard lock(mutex_);
  WebGpuExecutable& executable = own(any);
  throw_faults();
  std::size_t at = 0, launch = 0;
  for (; launch < first; ++at) launch += executable.steps[at].launches;
  if (executable.steps.empty()) return 0;
  check_unrun(executable);
  wait_for(last_ticket_);
  const std::uint32_t number = executable.uses_hyper ? write_rows({&row, 1}) : 0;
  const HostClock::time_point start = HostClock::now();
  const double most = submit_seconds_ > 0 ? submit_seconds_ : budget.count();
  while (at < executable.steps.size()) {
    const double left = (budget - Seconds(HostClock::now() - start)).count();
    const bool known = executable.steps[at].took.count() > 0;
    // The first kernel always runs. Further ones run if their known time fits, or, if it is
    // unknown, while any time is left.
    if (launch > first && (left <= 0 || executable.steps[at].took.count() > left)) break;
    if (known) {
      const std::size_t count = count_fitting(executable, at, std::min(left, most));
      submit_steps(executable, at, count, number, true);
      wait_for(last_ticket_);
      for (std::size_t end = at + count; at < end; ++at) launch += executable.steps[at].launches;
    } else {
      run_timed(executable, at, number);
      launch += executable.steps[at++].launches;
    }
  }
  return at == executable.steps.size() ? 0 : launch;
}

}  // namespace tensorgrad::webgpu
