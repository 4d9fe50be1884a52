// SPDX-License-Identifier: MIT
// Opening and closing the device, its buffers, and the errors that its callbacks report.
#include "backend/webgpu/device.h"

#include <array>
#include <cstdlib>

#include "backend/webgpu/vendor.h"
#include "base/check.h"

namespace tensorgrad::webgpu {
namespace {

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

WebGpuDevice::WebGpuDevice(const Api& api, Adapter adapter, const WebGpuOptions& options)
    : api_(api), checked_(options.checked), adapter_(std::move(adapter)) {
  request_device(options);
  open(options);
}

WebGpuDevice::WebGpuDevice(std::unique_ptr<const Api> api, Adapter adapter,
                           const ExternalDevice& external, const WebGpuOptions& options)
    : own_api_(std::move(api)),
      api_(*own_api_),
      externally_lost_(external.lost),
      checked_(options.checked),
      adapter_(std::move(adapter)) {
  api_.InstanceAddRef(external.instance);
  instance_ = Handle(api_, external.instance);
  api_.DeviceAddRef(external.device);
  device_ = Handle(api_, external.device);
  open(options);
}

void WebGpuDevice::open(const WebGpuOptions& options) {
  queue_ = Handle(api_, api_.DeviceGetQueue(device_.get()));
  info_ = adapter_.info.device;
  WGPULimits limits = {};
  api_.DeviceGetLimits(device_.get(), &limits);
  info_.limits = limits_of(limits);
  info_.joins_launches = true;
  timestamps_ = adapter_.timestamps;
  submit_seconds_ = options.submit_milliseconds / 1000;
  make_ring();
  if (info_.stores_f16) info_.stores_f16 = rounds_as_f16();
  units_ = find_units();
  if (units_.present()) {
    info_.features.push_back("subgroup-matrix " + std::to_string(units_.m) + "x" +
                             std::to_string(units_.n) + "x" + std::to_string(units_.k));
  }
  if (!options.tuning_cache.empty())
    tuning_ = std::make_unique<io::TuningFile>(options.tuning_cache);
  // Registered after the driver is loaded, so it runs before the driver's own exit handlers. A
  // device in a static object may be destroyed after it.
  static const int noted = std::atexit([] { process_ends = true; });
  static_cast<void>(noted);
}

WebGpuDevice::~WebGpuDevice() {
  if (process_ends) return;
  // Callbacks may run while the device is released, so the objects they point to are freed after
  // it.
  try {
    wait_for(last_ticket_);
  } catch (const Error&) {  // errors are ignored in the destructor
  }
  buffers_.clear();
  staging_.clear();
  ring_group_.reset();
  ring_.reset();
  pipeline_layouts_.clear();
  layouts_.clear();
  for (Flight& flight : flights_) flight.staging.reset();
  queue_.reset();
  device_.reset();
  adapter_.handle.reset();
  instance_.reset();
}

void WebGpuDevice::request_device(const WebGpuOptions& options) {
  const WGPULimits limits = wanted_limits(api_, adapter_.handle.get(), options.default_limits);
  const std::vector<WGPUFeatureName> features = wanted_features(api_, adapter_.handle.get());
  WGPUDeviceDescriptor descriptor = {};
  descriptor.nextInChain = api_.vendor->device_chain(checked_);
  descriptor.label = view("tensorgrad");
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredFeatures = features.data();
  descriptor.requiredLimits = &limits;
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  descriptor.deviceLostCallbackInfo.callback = note_lost;
  descriptor.deviceLostCallbackInfo.userdata1 = faults_.get();
  descriptor.uncapturedErrorCallbackInfo.callback = note_error;
  descriptor.uncapturedErrorCallbackInfo.userdata1 = faults_.get();
  DeviceAnswer answer;
  WGPURequestDeviceCallbackInfo callback = {};
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.callback = take_device;
  callback.userdata1 = &answer;
  api_.AdapterRequestDevice(adapter_.handle.get(), &descriptor, callback);
  while (!answer.done) api_.InstanceProcessEvents(api_.instance);
  if (answer.device == nullptr) {
    throw DeviceError("webgpu: adapter " + adapter_.info.device.name +
                      " cannot create a device: " + answer.message);
  }
  device_ = Handle(api_, answer.device);
}

void WebGpuDevice::make_ring() {
  ring_ = create_buffer(kRingRows * kHyperRowBytes,
                        WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst, "run-time scalars");
  WGPUBindGroupEntry entry = {};
  entry.buffer = ring_.get();
  entry.size = kHyperRowBytes;
  WGPUBindGroupDescriptor descriptor = {};
  descriptor.label = view("run-time scalars");
  descriptor.layout = layout("h");
  descriptor.entryCount = 1;
  descriptor.entries = &entry;
  begin_scope();
  ring_group_ = Handle(api_, api_.DeviceCreateBindGroup(device_.get(), &descriptor));
  const std::string error = end_scope();
  if (!error.empty())
    throw DeviceError("webgpu: cannot create the bind group of run-time scalars: " + error);
}

bool WebGpuDevice::lost() {
  const std::lock_guard lock(faults_->mutex);
  if (externally_lost_ != nullptr && *externally_lost_ && !faults_->lost) {
    faults_->lost = true;
    faults_->lost_message = "reported by the application";
  }
  return faults_->lost;
}

void WebGpuDevice::throw_lost() {
  const std::lock_guard lock(faults_->mutex);
  throw DeviceLostError("webgpu: the device " + info_.name + " was lost: " + faults_->lost_message);
}

void WebGpuDevice::throw_faults() {
  if (lost()) throw_lost();
  std::string error;
  {
    const std::lock_guard lock(faults_->mutex);
    std::swap(error, faults_->error);
  }
  if (!error.empty()) throw DeviceError("webgpu: " + error);
}

void WebGpuDevice::expect_alive() {
  api_.vendor->report_loss(api_, queue_.get(), ring_.get());
  throw_faults();
}

void WebGpuDevice::begin_scope() {
  for (const WGPUErrorFilter filter : kFilters) api_.DevicePushErrorScope(device_.get(), filter);
}

std::string WebGpuDevice::end_scope() {
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
  if (is_loss(first))
    note_error(nullptr, WGPUErrorType_Validation, view(first), faults_.get(), nullptr);
  if (lost()) throw_lost();
  const std::lock_guard lock(faults_->mutex);
  if (first.empty()) std::swap(first, faults_->error);
  return first;
}

Handle<WGPUBuffer> WebGpuDevice::create_buffer(std::int64_t bytes, WGPUBufferUsage usage,
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
                      std::to_string(bytes) + " bytes on " + adapter_.info.device.name + ": " +
                      (error.empty() ? "the driver returned none" : error));
  }
  return made;
}

BufferHandle WebGpuDevice::alloc(std::int64_t bytes, const std::string& label) {
  const std::lock_guard lock(mutex_);
  throw_faults();
  const std::int64_t most = info_.limits.max_buffer_bytes;
  if (bytes > most) {
    throw DeviceError("webgpu: buffer \"" + label + "\" takes " + std::to_string(bytes) +
                      " bytes; " + info_.name + " allows " + std::to_string(most));
  }
  const std::int64_t size = std::max<std::int64_t>((bytes + 255) / 256 * 256, 256);
  return add({create_buffer(
                  size, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst,
                  label),
              size, label});
}

BufferHandle WebGpuDevice::adopt(WGPUBuffer native, std::int64_t bytes, const std::string& label) {
  const std::lock_guard lock(mutex_);
  throw_faults();
  const auto size = static_cast<std::int64_t>(api_.BufferGetSize(native));
  if (size < bytes) {
    throw UserError(label + ": the buffer has " + std::to_string(size) + " bytes, " +
                    std::to_string(bytes) + " are needed (a multiple of 256)");
  }
  constexpr WGPUBufferUsage kUsage = WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc;
  if ((api_.BufferGetUsage(native) & kUsage) != kUsage) {
    throw UserError(label + ": the usage of the buffer must include Storage and CopySrc");
  }
  api_.BufferAddRef(native);
  return add({Handle(api_, native), size, label});
}

BufferHandle WebGpuDevice::add(Buffer made) {
  if (free_handles_.empty()) {
    buffers_.emplace_back();
    free_handles_.push_back(static_cast<BufferHandle>(buffers_.size()));
  }
  const BufferHandle handle = free_handles_.back();
  free_handles_.pop_back();
  buffers_[handle - 1] = std::move(made);
  return handle;
}

void WebGpuDevice::free(BufferHandle handle) {
  if (forked()) return;  // destructors call this
  const std::lock_guard lock(mutex_);
  buffer(handle) = Buffer();
  free_handles_.push_back(handle);
}

WebGpuDevice::Buffer& WebGpuDevice::buffer(BufferHandle handle) {
  CHECK(handle >= 1 && handle <= buffers_.size() && buffers_[handle - 1].handle,
        "no buffer " + std::to_string(handle));
  return buffers_[handle - 1];
}

void WebGpuDevice::lose() {
  const std::lock_guard lock(mutex_);
  api_.DeviceDestroy(device_.get());
  // wgpu-native invokes the callback only after all work is done, when every buffer is already
  // gone.
  note_lost(nullptr, WGPUDeviceLostReason_Destroyed, {}, faults_.get(), nullptr);
}

}  // namespace tensorgrad::webgpu

namespace tensorgrad::inline TENSORGRAD_ABI {

std::unique_ptr<Device> adopt_webgpu_device(const ExternalDevice& external,
                                            const WebGpuOptions& options) {
  if (external.instance == nullptr || external.device == nullptr) {
    throw UserError("device: ExternalDevice::" +
                    std::string(external.device == nullptr ? "device" : "instance") + " is null");
  }
  std::string reason;
  std::unique_ptr<webgpu::Api> api = webgpu::find_loaded_api(options.library, reason);
  if (api == nullptr) throw DeviceError("webgpu: " + reason);
  api->instance = external.instance;
  webgpu::Adapter adapter = webgpu::external_adapter(*api, external);
  return std::make_unique<webgpu::WebGpuDevice>(std::move(api), std::move(adapter), external,
                                                options);
}

std::unique_ptr<Device> make_webgpu_device(const WebGpuOptions& options) {
  std::string reason;
  const webgpu::Api* api = webgpu::load_api(options.library, reason);
  if (api == nullptr) throw DeviceError("webgpu: " + reason);
  if (api->instance == nullptr)
    throw DeviceError("webgpu: " + api->path + " cannot create a WebGPU instance");
  std::vector<webgpu::Adapter> adapters = webgpu::find_patiently(
      [&] { return webgpu::find_adapters(*api, options); },
      [&](auto& found) { return webgpu::choose_adapter(found, options.adapter) != nullptr; },
      pause_for);
  webgpu::Adapter* chosen = webgpu::choose_adapter(adapters, options.adapter);
  if (chosen != nullptr)
    return std::make_unique<webgpu::WebGpuDevice>(*api, std::move(*chosen), options);
  std::string list;
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    const AdapterInfo& info = adapters[i].info;
    list += "\n    " + std::to_string(i) + ": " + info.device.name + ": " + info.reason;
  }
  if (list.empty()) throw DeviceError("webgpu: there is no adapter");
  throw DeviceError(options.adapter < 0 ? "webgpu: no usable adapter; found:" + list
                                        : "webgpu: unknown adapter " +
                                              std::to_string(options.adapter) + "; found:" + list);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
