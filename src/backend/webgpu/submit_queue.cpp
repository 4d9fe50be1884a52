// SPDX-License-Identifier: MIT
#include "backend/webgpu/submit_queue.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "backend/webgpu/vendor.h"
#include "base/check.h"

namespace tensorgrad::webgpu {
namespace {

// Larger uploads are split, to bound the driver's staging memory.
constexpr std::size_t kUploadBytes = 32 << 20;

void finish_submit(PendingSubmit& submit, bool success) {
  submit.failed = !success;
  submit.done = true;
}

void note_work_done(WGPUQueueWorkDoneStatus status, WGPUStringView, void* submit, void*) {
  finish_submit(*static_cast<PendingSubmit*>(submit), status == WGPUQueueWorkDoneStatus_Success);
}

void note_mapped(WGPUMapAsyncStatus status, WGPUStringView, void* submit, void*) {
  finish_submit(*static_cast<PendingSubmit*>(submit), status == WGPUMapAsyncStatus_Success);
}

struct DeviceAnswer {
  WGPUDevice device = nullptr;
  std::string message;
  bool done = false;
};

void take_device(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message,
                 void* answer, void*) {
  auto* out = static_cast<DeviceAnswer*>(answer);
  if (status == WGPURequestDeviceStatus_Success) out->device = device;
  out->message = string_of(message);
  out->done = true;
}

void note_lost(WGPUDevice const*, WGPUDeviceLostReason reason, WGPUStringView message,
               void* userdata, void*) {
  auto* faults = static_cast<Faults*>(userdata);
  const std::lock_guard lock(faults->mutex);
  if (faults->lost) return;
  faults->lost = true;
  faults->lost_message = string_of(message);
  if (faults->lost_message.empty() && reason == WGPUDeviceLostReason_Destroyed) {
    faults->lost_message = "it was destroyed";
  }
}

// Libraries report calls on a lost device as validation errors, often before they report the loss.
// wgpu-native: "Parent device is lost"; Dawn: "[Device] is lost".
bool is_loss(std::string_view message) {
  return message.find("evice is lost") != message.npos ||
         message.find("evice] is lost") != message.npos ||
         message.find("evice lost") != message.npos;
}

void note_error(WGPUDevice const*, WGPUErrorType, WGPUStringView message, void* userdata, void*) {
  auto* faults = static_cast<Faults*>(userdata);
  const std::string text = string_of(message);
  if (is_loss(text)) {
    note_lost(nullptr, WGPUDeviceLostReason_Unknown, view("the library reports no reason"), faults,
              nullptr);
    return;
  }
  const std::lock_guard lock(faults->mutex);
  if (faults->error.empty()) faults->error = text;
}

struct ScopeAnswer {
  std::string message;
  bool done = false;
};

void take_scope(WGPUPopErrorScopeStatus, WGPUErrorType type, WGPUStringView message, void* answer,
                void*) {
  auto* out = static_cast<ScopeAnswer*>(answer);
  if (type != WGPUErrorType_NoError) {
    out->message = string_of(message);
    if (out->message.empty()) out->message = "unknown error";
  }
  out->done = true;
}

// wgpu-native has no error scopes for internal errors; these are reported as uncaptured errors.
constexpr std::array<WGPUErrorFilter, 2> kFilters = {WGPUErrorFilter_Validation,
                                                     WGPUErrorFilter_OutOfMemory};

}  // namespace

SubmitQueue::SubmitQueue(const Api& api, const Adapter& adapter, const WebGpuOptions& options,
                         const ExternalDevice* external)
    : api_(api), name_(adapter.info.device.name) {
  if (external == nullptr) {
    request_device(adapter, options);
  } else {
    externally_lost_ = external->lost;
    api_.DeviceAddRef(external->device);
    device_ = Handle(api_, external->device);
  }
  queue_ = Handle(api_, api_.DeviceGetQueue(device_.get()));
  WGPULimits limits = {};
  api_.DeviceGetLimits(device_.get(), &limits);
  limits_ = limits_of(limits);
  make_ring();
}

SubmitQueue::~SubmitQueue() {
  for (PendingSubmit& submit : pending_) submit.staging.reset();
}

void SubmitQueue::request_device(const Adapter& adapter, const WebGpuOptions& options) {
  const WGPULimits limits = wanted_limits(api_, adapter.handle.get(), options.default_limits);
  const std::vector<WGPUFeatureName> features = wanted_features(api_, adapter.handle.get());
  WGPUDeviceDescriptor descriptor = {};
  descriptor.nextInChain = api_.vendor->device_chain(options.checked);
  descriptor.label = view("tensorgrad");
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredFeatures = features.data();
  descriptor.requiredLimits = &limits;
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  descriptor.deviceLostCallbackInfo.callback = note_lost;
  descriptor.deviceLostCallbackInfo.userdata1 = &faults_;
  descriptor.uncapturedErrorCallbackInfo.callback = note_error;
  descriptor.uncapturedErrorCallbackInfo.userdata1 = &faults_;
  DeviceAnswer answer;
  WGPURequestDeviceCallbackInfo callback = {};
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.callback = take_device;
  callback.userdata1 = &answer;
  api_.AdapterRequestDevice(adapter.handle.get(), &descriptor, callback);
  while (!answer.done) api_.InstanceProcessEvents(api_.instance);
  if (answer.device == nullptr) {
    throw DeviceError("webgpu: adapter " + name_ + " cannot create a device: " + answer.message);
  }
  device_ = Handle(api_, answer.device);
}

void SubmitQueue::make_ring() {
  ring_layout_ = create_layout("h");
  ring_ = create_buffer(kRingRows * kRuntimeScalarBytes,
                        WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst, "runtime scalars");
  WGPUBindGroupEntry entry = {};
  entry.buffer = ring_.get();
  entry.size = kRuntimeScalarBytes;
  WGPUBindGroupDescriptor descriptor = {};
  descriptor.label = view("runtime scalars");
  descriptor.layout = ring_layout_.get();
  descriptor.entryCount = 1;
  descriptor.entries = &entry;
  begin_scope();
  ring_group_ = Handle(api_, api_.DeviceCreateBindGroup(device_.get(), &descriptor));
  const std::string error = end_scope();
  if (!error.empty())
    throw DeviceError("webgpu: cannot create the bind group of runtime scalars: " + error);
}

bool SubmitQueue::lost() {
  const std::lock_guard lock(faults_.mutex);
  if (externally_lost_ != nullptr && *externally_lost_ && !faults_.lost) {
    faults_.lost = true;
    faults_.lost_message = "reported by the application";
  }
  return faults_.lost;
}

void SubmitQueue::throw_lost() {
  const std::lock_guard lock(faults_.mutex);
  throw DeviceLostError("webgpu: the device " + name_ + " was lost: " + faults_.lost_message);
}

void SubmitQueue::throw_faults() {
  if (lost()) throw_lost();
  std::string error;
  {
    const std::lock_guard lock(faults_.mutex);
    std::swap(error, faults_.error);
  }
  if (!error.empty()) throw DeviceError("webgpu: " + error);
}

void SubmitQueue::expect_alive() {
  api_.vendor->report_loss(api_, queue_.get(), ring_.get());
  throw_faults();
}

void SubmitQueue::begin_scope() {
  for (const WGPUErrorFilter filter : kFilters) api_.DevicePushErrorScope(device_.get(), filter);
}

std::string SubmitQueue::end_scope() {
  std::string first;
  for (std::size_t i = 0; i < kFilters.size(); ++i) {
    ScopeAnswer answer;
    WGPUPopErrorScopeCallbackInfo info = {};
    info.mode = WGPUCallbackMode_AllowProcessEvents;
    info.callback = take_scope;
    info.userdata1 = &answer;
    api_.DevicePopErrorScope(device_.get(), info);
    while (!answer.done) api_.vendor->wait_for_event(api_, device_.get());
    if (first.empty()) first = answer.message;
  }
  if (is_loss(first)) note_error(nullptr, WGPUErrorType_Validation, view(first), &faults_, nullptr);
  if (lost()) throw_lost();
  const std::lock_guard lock(faults_.mutex);
  if (first.empty()) std::swap(first, faults_.error);
  return first;
}

Handle<WGPUBuffer> SubmitQueue::create_buffer(std::int64_t bytes, WGPUBufferUsage usage,
                                              const std::string& label) {
  WGPUBufferDescriptor descriptor = {};
  descriptor.label = view(label);
  descriptor.usage = usage;
  descriptor.size = static_cast<std::uint64_t>(bytes);
  begin_scope();
  Handle<WGPUBuffer> made(api_, api_.DeviceCreateBuffer(device_.get(), &descriptor));
  const std::string error = end_scope();
  if (!error.empty() || !made) {
    throw DeviceError("webgpu: cannot allocate buffer \"" + label + "\" of " +
                      std::to_string(bytes) + " bytes on " + name_ + ": " +
                      (error.empty() ? "the driver returned none" : error));
  }
  return made;
}

void SubmitQueue::lose() {
  api_.DeviceDestroy(device_.get());
  // wgpu-native invokes the callback only after all work is done, when every buffer is already
  // gone.
  note_lost(nullptr, WGPUDeviceLostReason_Destroyed, {}, &faults_, nullptr);
}

Buffer SubmitQueue::create_storage(std::int64_t bytes, const std::string& label) {
  const std::int64_t most = limits_.max_buffer_bytes;
  if (bytes > most) {
    throw DeviceError("webgpu: buffer \"" + label + "\" takes " + std::to_string(bytes) +
                      " bytes; " + name_ + " allows " + std::to_string(most));
  }
  const std::int64_t size = std::max<std::int64_t>((bytes + 255) / 256 * 256, 256);
  return {
      create_buffer(
          size, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst, label),
      size, label};
}

Handle<WGPUBindGroupLayout> SubmitQueue::create_layout(const std::string& modes) {
  std::vector<WGPUBindGroupLayoutEntry> entries(modes.size());
  for (std::size_t i = 0; i < modes.size(); ++i) {
    WGPUBindGroupLayoutEntry& entry = entries[i];
    entry = {};
    entry.binding = static_cast<std::uint32_t>(i);
    entry.visibility = WGPUShaderStage_Compute;
    // At least the element size of any shader's array, so the driver need not check it at each
    // dispatch.
    entry.buffer.minBindingSize = kMinBinding;
    entry.buffer.type =
        modes[i] == 'r' ? WGPUBufferBindingType_ReadOnlyStorage : WGPUBufferBindingType_Storage;
    if (modes[i] == 'h') {
      entry.buffer.type = WGPUBufferBindingType_Uniform;
      entry.buffer.hasDynamicOffset = WGPU_TRUE;
      entry.buffer.minBindingSize = kRuntimeScalarBytes;
    }
  }
  WGPUBindGroupLayoutDescriptor descriptor = {};
  descriptor.label = view(modes);
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  begin_scope();
  Handle<WGPUBindGroupLayout> made(api_,
                                   api_.DeviceCreateBindGroupLayout(device_.get(), &descriptor));
  const std::string error = end_scope();
  if (!error.empty())
    throw DeviceError("webgpu: cannot create the bind group layout \"" + modes + "\": " + error);
  return made;
}

std::uint32_t SubmitQueue::write_rows(std::span<const RuntimeScalars> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  if (ring_next_ + count > kRingRows) ring_next_ = 0;
  const std::int64_t first = ring_next_;
  ring_next_ += count;
  api_.QueueWriteBuffer(queue_.get(), ring_.get(),
                        static_cast<std::uint64_t>(first * kRuntimeScalarBytes), rows.data(),
                        rows.size_bytes());
  return static_cast<std::uint32_t>(first);
}

void SubmitQueue::bind_row(WGPUComputePassEncoder pass, std::size_t row) const {
  const auto offset = static_cast<std::uint32_t>(row * kRuntimeScalarBytes);
  api_.ComputePassEncoderSetBindGroup(pass, 1, ring_group_.get(), 1, &offset);
}

Handle<WGPUCommandEncoder> SubmitQueue::create_encoder() const {
  return {api_, api_.DeviceCreateCommandEncoder(device_.get(), nullptr)};
}

Handle<WGPUCommandBuffer> SubmitQueue::finish(WGPUCommandEncoder encoder) {
  const Stopwatch timer(host_.encoding);
  return {api_, api_.CommandEncoderFinish(encoder, nullptr)};
}

// Submits and adds a submit. The caller must request a callback for it.
PendingSubmit& SubmitQueue::take_off(std::span<const WGPUCommandBuffer> commands, bool is_run) {
  const Stopwatch timer(host_.submitting);
  // An error of rejected commands must be thrown first: wgpu-native aborts if they are submitted.
  api_.vendor->poll(api_, device_.get());
  expect_alive();
  last_mark_ = api_.vendor->submit(api_, queue_.get(), commands);
  return add_pending(last_mark_, is_run);
}

PendingSubmit& SubmitQueue::add_pending(std::uint64_t mark, bool is_run) {
  if (free_submits_.empty()) free_submits_.emplace_back();
  PendingSubmit& submit = free_submits_.front();
  submit.mark = mark;
  submit.ticket = ++last_ticket_;
  submit.done = submit.failed = false;
  submit.is_run = is_run;
  pending_.splice(pending_.end(), free_submits_, free_submits_.begin());
  return submit;
}

Ticket SubmitQueue::submit(std::span<const WGPUCommandBuffer> commands, bool is_run) {
  PendingSubmit& submit = take_off(commands, is_run);
  WGPUQueueWorkDoneCallbackInfo info = {};
  info.mode = WGPUCallbackMode_AllowProcessEvents;
  info.callback = note_work_done;
  info.userdata1 = &submit;
  api_.QueueOnSubmittedWorkDone(queue_.get(), info);
  return submit.ticket;
}

void SubmitQueue::map(WGPUBuffer buffer, WGPUMapMode mode, std::int64_t bytes,
                      PendingSubmit& submit) {
  WGPUBufferMapCallbackInfo info = {};
  info.mode = WGPUCallbackMode_AllowProcessEvents;
  info.callback = note_mapped;
  info.userdata1 = &submit;
  api_.BufferMapAsync(buffer, mode, 0, static_cast<std::size_t>(bytes), info);
}

Ticket SubmitQueue::submit_and_map(std::span<const WGPUCommandBuffer> commands, WGPUBuffer buffer,
                                   std::int64_t bytes) {
  PendingSubmit& submit = take_off(commands, false);
  map(buffer, WGPUMapMode_Read, bytes, submit);
  return submit.ticket;
}

Ticket SubmitQueue::map_for_writing(WGPUBuffer buffer, std::int64_t bytes) {
  expect_alive();
  PendingSubmit& submit = add_pending(last_mark_, false);
  map(buffer, WGPUMapMode_Write, bytes, submit);
  return submit.ticket;
}

Ticket SubmitQueue::finish_and_submit(WGPUCommandEncoder encoder, bool is_run) {
  const Handle<WGPUCommandBuffer> commands = finish(encoder);
  WGPUCommandBuffer buffer = commands.get();
  return submit({&buffer, 1}, is_run);
}

std::size_t SubmitQueue::runs_in_flight() const {
  return static_cast<std::size_t>(std::count_if(
      pending_.begin(), pending_.end(), [](const PendingSubmit& submit) { return submit.is_run; }));
}

void SubmitQueue::make_room(bool for_run) {
  while (pending_.size() >= kMaxPendingSubmits || (for_run && runs_in_flight() >= kMaxRuns))
    wait_oldest();
}

// Copies a finished download to the host and keeps the staging buffer for reuse.
void SubmitQueue::deliver(PendingSubmit& submit) {
  if (!submit.staging || submit.failed) return;
  const std::size_t bytes = submit.out.size();
  if (bytes > 0) {  // else wait() threw, and the caller's memory may be gone
    expect_alive();
    const void* mapped = api_.BufferGetConstMappedRange(submit.staging.get(), 0, bytes);
    if (mapped == nullptr) drop();
    std::memcpy(submit.out.data(), mapped, bytes);
  }
  api_.BufferUnmap(submit.staging.get());
  staging_.emplace_back(submit.staging_bytes, std::move(submit.staging));
}

// Treats dropped work as a device loss, since later work depends on it. The driver may report the
// loss only later.
void SubmitQueue::drop() {
  {
    const std::lock_guard lock(faults_.mutex);
    faults_.lost = true;
    faults_.lost_message = "it dropped submitted work";
  }
  throw_lost();
}

// Removes finished submits from the queue, oldest first.
void SubmitQueue::settle() {
  if (lost()) throw_lost();  // mapped memory is gone
  while (!pending_.empty() && pending_.front().done) {
    PendingSubmit& submit = pending_.front();
    deliver(submit);
    finished_ = submit.ticket;
    const bool failed = submit.failed;
    submit.staging.reset();
    submit.out = {};
    free_submits_.splice(free_submits_.end(), pending_, pending_.begin());
    if (failed) {
      throw_faults();
      drop();
    }
  }
}

void SubmitQueue::wait_oldest() {
  const Stopwatch timer(host_.waiting);
  const PendingSubmit& oldest = pending_.front();
  while (!oldest.done && !lost()) {
    api_.vendor->wait(api_, device_.get(), oldest.mark);
  }
  settle();
}

void SubmitQueue::wait_for(Ticket ticket) {
  while (finished_ < ticket && !pending_.empty()) wait_oldest();
}

bool SubmitQueue::done(Ticket ticket) {
  if (finished_ >= ticket) return true;
  throw_faults();
  api_.vendor->poll(api_, device_.get());
  settle();
  return finished_ >= ticket;
}

void SubmitQueue::wait(Ticket ticket) {
  CHECK(ticket <= last_ticket_, "no such ticket");
  try {
    if (finished_ < ticket) {
      throw_faults();
      wait_for(ticket);
    }
    throw_faults();
  } catch (...) {
    // The caller may free the destinations of its downloads.
    for (PendingSubmit& submit : pending_) {
      if (submit.ticket <= ticket) submit.out = {};
    }
    throw;
  }
}

void SubmitQueue::upload(const Buffer& target, std::int64_t offset,
                         std::span<const std::byte> data) {
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
Handle<WGPUBuffer> SubmitQueue::take_staging(std::int64_t bytes, std::int64_t& capacity) {
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
  if (capacity > limits_.max_buffer_bytes) capacity = bytes;
  return create_buffer(capacity, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, "staging");
}

Ticket SubmitQueue::copy_out(WGPUBuffer source, std::int64_t offset, std::span<std::byte> out) {
  const std::size_t bytes = out.size();
  std::int64_t capacity = 0;
  Handle<WGPUBuffer> staging = take_staging(static_cast<std::int64_t>(bytes), capacity);
  const Handle<WGPUCommandEncoder> encoder = create_encoder();
  api_.CommandEncoderCopyBufferToBuffer(encoder.get(), source, static_cast<std::uint64_t>(offset),
                                        staging.get(), 0, bytes);
  const Handle<WGPUCommandBuffer> commands = finish(encoder.get());
  WGPUCommandBuffer buffer = commands.get();
  PendingSubmit& submit = take_off({&buffer, 1}, false);
  submit.staging = std::move(staging);
  submit.staging_bytes = capacity;
  submit.out = out;
  map(submit.staging.get(), WGPUMapMode_Read, static_cast<std::int64_t>(bytes), submit);
  return submit.ticket;
}

Ticket SubmitQueue::download(const Buffer& source, std::int64_t offset, std::span<std::byte> out) {
  const auto bytes = static_cast<std::int64_t>(out.size());
  CHECK(offset >= 0 && offset % 4 == 0 && bytes % 4 == 0, source.label);
  CHECK(offset + bytes <= source.bytes, source.label);
  if (bytes == 0) return last_ticket_;
  make_room(false);
  return copy_out(source.handle.get(), offset, out);
}

void SubmitQueue::read_back(WGPUBuffer source, std::span<std::byte> out) {
  wait_for(copy_out(source, 0, out));
}

}  // namespace tensorgrad::webgpu
