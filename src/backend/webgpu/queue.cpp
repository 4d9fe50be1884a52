// SPDX-License-Identifier: MIT
// The ordered queue: uploads, downloads, and waiting for submitted work. Submits finish in order. A
// ticket is finished when its submit is and, for a download, when the bytes are on the host.
#include <algorithm>
#include <bit>
#include <cstring>

#include "backend/webgpu/device.h"
#include "backend/webgpu/vendor.h"
#include "base/check.h"

namespace tensorgrad::webgpu {
namespace {

// Larger uploads are split, to bound the driver's staging memory.
constexpr std::size_t kUploadBytes = 32 << 20;

void finish_flight(Flight& flight, bool success) {
  flight.failed = !success;
  flight.done = true;
}

void note_work_done(WGPUQueueWorkDoneStatus status, WGPUStringView, void* flight, void*) {
  finish_flight(*static_cast<Flight*>(flight), status == WGPUQueueWorkDoneStatus_Success);
}

void note_mapped(WGPUMapAsyncStatus status, WGPUStringView, void* flight, void*) {
  finish_flight(*static_cast<Flight*>(flight), status == WGPUMapAsyncStatus_Success);
}

}  // namespace

Handle<WGPUCommandBuffer> WebGpuDevice::finish(WGPUCommandEncoder encoder) {
  const Stopwatch timer(host_.encoding);
  return {api_, api_.CommandEncoderFinish(encoder, nullptr)};
}

Flight& WebGpuDevice::finish_and_submit(WGPUCommandEncoder encoder, bool is_run) {
  const Handle<WGPUCommandBuffer> commands = finish(encoder);
  WGPUCommandBuffer buffer = commands.get();
  return submit({&buffer, 1}, is_run);
}

HostTimes WebGpuDevice::host_times() const {
  const std::lock_guard lock(mutex_);
  return host_;
}

// Submits and adds a flight. The caller must request a callback for it.
Flight& WebGpuDevice::submit(std::span<const WGPUCommandBuffer> commands, bool is_run) {
  const Stopwatch timer(host_.submitting);
  // An error of rejected commands must be thrown first: wgpu-native aborts if they are submitted.
  api_.vendor->poll(api_, device_.get());
  expect_alive();
  if (landed_.empty()) landed_.emplace_back();
  Flight& flight = landed_.front();
  flight.mark = api_.vendor->submit(api_, queue_.get(), commands);
  flight.ticket = ++last_ticket_;
  flight.done = flight.failed = false;
  flight.is_run = is_run;
  flights_.splice(flights_.end(), landed_, landed_.begin());
  return flight;
}

void WebGpuDevice::watch(Flight& flight) {
  WGPUQueueWorkDoneCallbackInfo info = {};
  info.mode = WGPUCallbackMode_AllowProcessEvents;
  info.callback = note_work_done;
  info.userdata1 = &flight;
  api_.QueueOnSubmittedWorkDone(queue_.get(), info);
}

std::size_t WebGpuDevice::runs_in_flight() const {
  return static_cast<std::size_t>(std::count_if(
      flights_.begin(), flights_.end(), [](const Flight& flight) { return flight.is_run; }));
}

void WebGpuDevice::map(Flight& flight, std::int64_t bytes) {
  WGPUBufferMapCallbackInfo info = {};
  info.mode = WGPUCallbackMode_AllowProcessEvents;
  info.callback = note_mapped;
  info.userdata1 = &flight;
  api_.BufferMapAsync(flight.staging.get(), WGPUMapMode_Read, 0, static_cast<std::size_t>(bytes),
                      info);
}

// Copies a finished download to the host and keeps the staging buffer for reuse.
void WebGpuDevice::deliver(Flight& flight) {
  if (!flight.staging || flight.failed) return;
  const std::size_t bytes = flight.out.size();
  if (bytes > 0) {  // else wait() threw, and the caller's memory may be gone
    expect_alive();
    const void* mapped = api_.BufferGetConstMappedRange(flight.staging.get(), 0, bytes);
    if (mapped == nullptr) drop();
    std::memcpy(flight.out.data(), mapped, bytes);
  }
  api_.BufferUnmap(flight.staging.get());
  staging_.emplace_back(flight.staging_bytes, std::move(flight.staging));
}

// Treats dropped work as a device loss, since later work depends on it. The driver may report the
// loss only later.
void WebGpuDevice::drop() {
  {
    const std::lock_guard lock(faults_->mutex);
    faults_->lost = true;
    faults_->lost_message = "it dropped submitted work";
  }
  throw_lost();
}

// Removes finished flights from the queue, oldest first.
void WebGpuDevice::settle() {
  if (lost()) throw_lost();  // mapped memory is gone
  while (!flights_.empty() && flights_.front().done) {
    Flight& flight = flights_.front();
    deliver(flight);
    finished_ = flight.ticket;
    const bool failed = flight.failed;
    flight.staging.reset();
    flight.out = {};
    landed_.splice(landed_.end(), flights_, flights_.begin());
    if (failed) {
      throw_faults();
      drop();
    }
  }
}

void WebGpuDevice::wait_oldest() {
  const Stopwatch timer(host_.waiting);
  const Flight& oldest = flights_.front();
  while (!oldest.done && !lost()) {
    api_.vendor->wait(api_, device_.get(), oldest.mark);
  }
  settle();
}

void WebGpuDevice::wait_for(Ticket ticket) {
  while (finished_ < ticket && !flights_.empty()) wait_oldest();
}

bool WebGpuDevice::done(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  if (finished_ >= ticket) return true;
  throw_faults();
  api_.vendor->poll(api_, device_.get());
  settle();
  return finished_ >= ticket;
}

void WebGpuDevice::wait(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  CHECK(ticket <= last_ticket_, "no such ticket");
  try {
    if (finished_ < ticket) {
      throw_faults();
      wait_for(ticket);
    }
    throw_faults();
  } catch (...) {
    // The caller may free the destinations of its downloads.
    for (Flight& flight : flights_) {
      if (flight.ticket <= ticket) flight.out = {};
    }
    throw;
  }
}

void WebGpuDevice::upload(BufferHandle handle, std::int64_t offset,
                          std::span<const std::byte> data) {
  const std::lock_guard lock(mutex_);
  throw_faults();
  const Buffer& target = buffer(handle);
  CHECK(offset >= 0 && offset % 4 == 0 && data.size() % 4 == 0, target.label);
  CHECK(offset + static_cast<std::int64_t>(data.size()) <= target.bytes, target.label);
  for (std::size_t at = 0; at < data.size(); at += kUploadBytes) {
    const std::size_t part = std::min(kUploadBytes, data.size() - at);
    api_.QueueWriteBuffer(queue_.get(), target.handle.get(),
                          static_cast<std::uint64_t>(offset) + at, data.data() + at, part);
    if (data.size() > kUploadBytes) {
      expect_alive();
      api_.QueueSubmit(queue_.get(), 0, nullptr);
    }
  }
}

// Returns the smallest unused staging buffer of at least `bytes` that is not much larger, or else a
// new one.
Handle<WGPUBuffer> WebGpuDevice::take_staging(std::int64_t bytes, std::int64_t& capacity) {
  auto best = staging_.end();
  for (auto entry = staging_.begin(); entry != staging_.end(); ++entry) {
    if (entry->first < bytes || entry->first > 4 * std::max<std::int64_t>(bytes, 4096)) continue;
    if (best == staging_.end() || entry->first < best->first) best = entry;
  }
  if (best != staging_.end()) {
    Handle<WGPUBuffer> found = std::move(best->second);
    capacity = best->first;
    staging_.erase(best);
    return found;
  }
  capacity = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 256))));
  if (capacity > info_.limits.max_buffer_bytes) capacity = bytes;
  return create_buffer(capacity, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, "staging");
}

Ticket WebGpuDevice::download(BufferHandle handle, std::int64_t offset, std::span<std::byte> out) {
  const std::lock_guard lock(mutex_);
  throw_faults();
  const Buffer& source = buffer(handle);
  const auto bytes = static_cast<std::int64_t>(out.size());
  CHECK(offset >= 0 && offset % 4 == 0 && bytes % 4 == 0, source.label);
  CHECK(offset + bytes <= source.bytes, source.label);
  if (bytes == 0) return last_ticket_;
  while (flights_.size() >= kMaxFlights) wait_oldest();
  std::int64_t capacity = 0;
  Handle<WGPUBuffer> staging = take_staging(bytes, capacity);
  const Handle<WGPUCommandEncoder> encoder(api_,
                                           api_.DeviceCreateCommandEncoder(device_.get(), nullptr));
  api_.CommandEncoderCopyBufferToBuffer(encoder.get(), source.handle.get(),
                                        static_cast<std::uint64_t>(offset), staging.get(), 0,
                                        static_cast<std::uint64_t>(bytes));
  Flight& flight = finish_and_submit(encoder.get(), false);
  flight.staging = std::move(staging);
  flight.staging_bytes = capacity;
  flight.out = out;
  map(flight, bytes);
  return flight.ticket;
}

}  // namespace tensorgrad::webgpu
