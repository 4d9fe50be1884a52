// SPDX-License-Identifier: MIT
// Parts of runs, and runs in which the host replaces ranges of a buffer. In these, all launches
// before the last range are submitted at once, each range followed by a copy to a staging buffer
// that is then mapped: the device computes later ranges while the host reads, adds and writes
// earlier ones.
#include "backend/webgpu/runner.h"
#include "base/check.h"

namespace tensorgrad::webgpu {
namespace {

// Returns the number of the dispatch that begins with a launch.
std::size_t first_dispatch(const WebGpuExecutable& executable, std::size_t launch) {
  std::size_t at = 0, dispatch = 0;
  for (; at < launch && dispatch < executable.dispatches.size(); ++dispatch)
    at += executable.dispatches[dispatch].launches;
  CHECK(at == launch, "a range ends within concurrent launches");
  return dispatch;
}

}  // namespace

void Runner::make_staging(WebGpuExecutable& executable, std::span<const HostRange> ranges) {
  std::vector<RangeStaging>& staging = executable.staging;
  staging.resize(ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (staging[i].bytes == ranges[i].bytes) continue;
    staging[i] = {};
    staging[i].down =
        queue_.create_buffer(ranges[i].bytes, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst,
                             "gradients to the host");
    staging[i].up =
        queue_.create_buffer(ranges[i].bytes, WGPUBufferUsage_MapWrite | WGPUBufferUsage_CopySrc,
                             "gradients from the host");
    staging[i].bytes = ranges[i].bytes;
  }
}

// Submits the dispatches from `first` up to `end`. The first submit is small, so that the device
// begins while the others are encoded.
void Runner::submit_in_parts(const WebGpuExecutable& executable, std::size_t first, std::size_t end,
                             const Runs& run) {
  std::size_t part = kFirstDispatches;
  for (; end - first >= part + part / 2; part *= 2) {
    queue_.make_room(false);
    submit_dispatches(executable, first, part, run, false);
    first += part;
  }
  if (first == end) return;
  queue_.make_room(false);
  submit_dispatches(executable, first, end - first, run, false);
}

Ticket Runner::run_part(WebGpuExecutable& executable, const RuntimeScalars& row, std::size_t first,
                        std::size_t end) {
  const std::size_t begin = first_dispatch(executable, first);
  const std::size_t stop = first_dispatch(executable, end);
  if (begin == stop) return queue_.last_ticket();
  check_unrun(executable);
  // The part counts as a run, as it has a row of scalars.
  queue_.make_room(true);
  const Runs run = write_rows(executable, {&row, 1}, 0);
  submit_in_parts(executable, begin, stop - 1, run);
  queue_.make_room(false);
  submit_dispatches(executable, stop - 1, 1, run, true);
  return queue_.last_ticket();
}

void Runner::begin_replacing(WebGpuExecutable& executable, const RuntimeScalars& row,
                             WGPUBuffer buffer, std::span<const HostRange> ranges,
                             std::size_t resume) {
  check_unrun(executable);
  make_staging(executable, ranges);
  queue_.make_room(true);
  const Runs run = write_rows(executable, {&row, 1}, 0);
  std::size_t at = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::size_t end = first_dispatch(executable, ranges[i].ready);
    submit_in_parts(executable, at, end, run);
    at = end;
    RangeStaging& staging = executable.staging[i];
    const Handle<WGPUCommandEncoder> encoder = queue_.create_encoder();
    api_.CommandEncoderCopyBufferToBuffer(
        encoder.get(), buffer, static_cast<std::uint64_t>(ranges[i].offset), staging.down.get(), 0,
        static_cast<std::uint64_t>(staging.bytes));
    const Handle<WGPUCommandBuffer> commands(api_,
                                             api_.CommandEncoderFinish(encoder.get(), nullptr));
    WGPUCommandBuffer copy = commands.get();
    queue_.make_room(false);
    staging.down_mapped = queue_.submit_and_map({&copy, 1}, staging.down.get(), staging.bytes);
    staging.up_mapped = queue_.map_for_writing(staging.up.get(), staging.bytes);
  }
  submit_in_parts(executable, at, first_dispatch(executable, resume), run);
}

Runner::MappedRange Runner::wait_for_range(WebGpuExecutable& executable, std::size_t range) {
  RangeStaging& staging = executable.staging[range];
  queue_.wait(std::max(staging.down_mapped, staging.up_mapped));
  queue_.expect_alive();
  const auto bytes = static_cast<std::size_t>(staging.bytes);
  const void* old = api_.BufferGetConstMappedRange(staging.down.get(), 0, bytes);
  void* fresh = api_.BufferGetMappedRange(staging.up.get(), 0, bytes);
  if (old == nullptr || fresh == nullptr) {
    queue_.throw_faults();
    throw DeviceError("webgpu: a staging buffer of " + std::to_string(bytes) +
                      " bytes cannot be accessed");
  }
  return {{static_cast<const std::byte*>(old), bytes}, {static_cast<std::byte*>(fresh), bytes}};
}

void Runner::upload_range(WebGpuExecutable& executable, WGPUBuffer buffer, const HostRange& range,
                          std::size_t number) {
  RangeStaging& staging = executable.staging[number];
  queue_.expect_alive();
  api_.BufferUnmap(staging.down.get());
  api_.BufferUnmap(staging.up.get());
  const Handle<WGPUCommandEncoder> encoder = queue_.create_encoder();
  api_.CommandEncoderCopyBufferToBuffer(encoder.get(), staging.up.get(), 0, buffer,
                                        static_cast<std::uint64_t>(range.offset),
                                        static_cast<std::uint64_t>(staging.bytes));
  queue_.make_room(false);
  queue_.finish_and_submit(encoder.get(), false);
}

Ticket Runner::end_replacing(WebGpuExecutable& executable, const RuntimeScalars& row,
                             std::size_t resume) {
  // Other programs may have overwritten the first row meanwhile.
  queue_.make_room(true);
  const Runs run = write_rows(executable, {&row, 1}, 0);
  const std::size_t first = first_dispatch(executable, resume);
  if (first < executable.dispatches.size())
    submit_dispatches(executable, first, executable.dispatches.size() - first, run, true);
  return queue_.last_ticket();
}

}  // namespace tensorgrad::webgpu
