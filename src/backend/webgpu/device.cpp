// SPDX-License-Identifier: MIT
// Opening and closing the device, its buffers, and the calls that its parts answer.
#include "backend/webgpu/device.h"

#include <cstdlib>

#include "base/check.h"

namespace tensorgrad::webgpu {
namespace {

// The application's instance, which its device keeps alive; or none.
Handle<WGPUInstance> instance_of(const Api& api, const ExternalDevice* external) {
  if (external == nullptr) return {};
  api.InstanceAddRef(external->instance);
  return {api, external->instance};
}

}  // namespace

WebGpuDevice::WebGpuDevice(std::shared_ptr<const Api> api, Adapter adapter,
                           const WebGpuOptions& options)
    : WebGpuDevice(std::move(api), std::move(adapter), nullptr, options) {}

WebGpuDevice::WebGpuDevice(std::unique_ptr<const Api> api, Adapter adapter,
                           const ExternalDevice& external, const WebGpuOptions& options)
    : WebGpuDevice(std::shared_ptr<const Api>(std::move(api)), std::move(adapter), &external,
                   options) {}

WebGpuDevice::WebGpuDevice(std::shared_ptr<const Api> api, Adapter adapter,
                           const ExternalDevice* external, const WebGpuOptions& options)
    : shared_api_(std::move(api)),
      api_(*shared_api_),
      instance_(instance_of(api_, external)),
      adapter_(std::move(adapter)),
      queue_(api_, adapter_, options, external),
      pipelines_(queue_, options.checked),
      probe_(queue_, pipelines_, adapter_, options.f16x3),
      profiler_(queue_, adapter_.timestamps),
      runner_(queue_, options.submit_milliseconds),
      tuner_(queue_, pipelines_, profiler_, probe_.info(), options.tuning_cache) {
  // Registered after the driver is loaded, so it runs before the driver's own exit handlers. A
  // device in a static object may be destroyed after it.
  static const int noted = std::atexit([] { process_ends = true; });
  static_cast<void>(noted);
}

WebGpuDevice::~WebGpuDevice() {
  if (process_ends) return;
  try {
    queue_.wait_for_all();
  } catch (const Error&) {  // errors are ignored in the destructor
  }
}

BufferHandle WebGpuDevice::alloc(std::int64_t bytes, const std::string& label) {
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
  return add(queue_.create_storage(bytes, label));
}

BufferHandle WebGpuDevice::adopt(WGPUBuffer native, std::int64_t bytes, const std::string& label) {
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
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

WebGpuExecutable& WebGpuDevice::own(Executable& executable) {
  auto* mine = dynamic_cast<WebGpuExecutable*>(&executable);
  CHECK(mine != nullptr, "an executable of another backend");
  return *mine;
}

BufferHandle WebGpuDevice::add(Buffer made) {
  if (free_handles_.empty()) {
    buffers_.emplace_back();
    free_handles_.push_back(static_cast<BufferHandle>(buffers_.size()));
  }
  const BufferHandle handle = free_handles_.back();
  free_handles_.pop_back();
  made.number = ++added_;
  buffers_[handle - 1] = std::move(made);
  return handle;
}

void WebGpuDevice::free(BufferHandle handle) {
  if (forked()) return;  // destructors call this
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = buffer(handle).number;
  for (WebGpuExecutable* executable : executables_) {
    for (BoundDispatch& dispatch : executable->dispatches) {
      std::erase_if(dispatch.kept, [&](const BindGroup& each) {
        return std::find(each.buffers.begin(), each.buffers.end(), number) != each.buffers.end();
      });
    }
  }
  buffer(handle) = Buffer();
  free_handles_.push_back(handle);
}

Buffer& WebGpuDevice::buffer(BufferHandle handle) {
  CHECK(handle >= 1 && handle <= buffers_.size() && buffers_[handle - 1].handle,
        "no buffer " + std::to_string(handle));
  return buffers_[handle - 1];
}

std::vector<const Buffer*> WebGpuDevice::find(std::span<const BufferHandle> handles) const {
  std::vector<const Buffer*> found;
  for (const BufferHandle handle : handles) {
    const bool known = handle >= 1 && handle <= buffers_.size() && buffers_[handle - 1].handle;
    found.push_back(known ? &buffers_[handle - 1] : nullptr);
  }
  return found;
}

void WebGpuDevice::upload(BufferHandle handle, std::int64_t offset,
                          std::span<const std::byte> data) {
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
  queue_.upload(buffer(handle), offset, data);
}

Ticket WebGpuDevice::download(BufferHandle handle, std::int64_t offset, std::span<std::byte> out) {
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
  return queue_.download(buffer(handle), offset, out);
}

Ticket WebGpuDevice::run(Executable& executable, std::span<const RuntimeScalars> rows) {
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
  return runner_.run(own(executable), rows);
}

std::size_t WebGpuDevice::run_some(Executable& executable, const RuntimeScalars& row,
                                   std::size_t first, std::size_t end,
                                   std::chrono::duration<double> budget) {
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
  return runner_.run_some(own(executable), row, first, end, budget);
}

Ticket WebGpuDevice::run_part(Executable& executable, const RuntimeScalars& row, std::size_t first,
                              std::size_t end) {
  if (!runner_.can_submit_parts()) return Device::run_part(executable, row, first, end);
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
  return runner_.run_part(own(executable), row, first, end);
}

Ticket WebGpuDevice::run_replacing(Executable& any, const RuntimeScalars& row, BufferHandle handle,
                                   std::span<const HostRange> ranges, std::size_t resume,
                                   const HostReplace& replace) {
  using Clock = std::chrono::steady_clock;
  if (!runner_.can_replace() || own(any).dispatches.empty())
    return Device::run_replacing(any, row, handle, ranges, resume, replace);
  std::unique_lock lock(mutex_);
  queue_.throw_faults();
  WebGpuExecutable& executable = own(any);
  WGPUBuffer target = buffer(handle).handle.get();
  try {
    runner_.begin_replacing(executable, row, target, ranges, resume);
    const Ticket computed = queue_.last_ticket();
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const Runner::MappedRange mapped = runner_.wait_for_range(executable, i);
      // Other threads may use the device meanwhile, such as another rank.
      lock.unlock();
      const Clock::time_point start = Clock::now();
      try {
        replace(i, mapped.old, mapped.fresh);
      } catch (...) {
        lock.lock();
        throw;
      }
      const std::chrono::duration<double, std::micro> spent = Clock::now() - start;
      lock.lock();
      queue_.note_exchange(spent.count(), !queue_.done(computed));
      runner_.upload_range(executable, target, ranges[i], i);
    }
    return runner_.end_replacing(executable, row, resume);
  } catch (...) {
    try {
      queue_.wait_for_all();  // maps that are aborted would count as a loss of the device
    } catch (const Error&) {  // the first error counts
    }
    executable.staging.clear();  // some are mapped
    throw;
  }
}

bool WebGpuDevice::done(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  return queue_.done(ticket);
}

void WebGpuDevice::wait(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  queue_.wait(ticket);
}

std::vector<LaunchTiming> WebGpuDevice::profile(Executable& executable, const RuntimeScalars& row) {
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
  return profiler_.profile(own(executable), row);
}

HostTimes WebGpuDevice::host_times() const {
  const std::lock_guard lock(mutex_);
  return queue_.host_times();
}

void WebGpuDevice::lose() {
  const std::lock_guard lock(mutex_);
  queue_.lose();
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
  const std::shared_ptr<const webgpu::Api> api = webgpu::load_api(options.library, reason);
  if (api == nullptr) throw DeviceError("webgpu: " + reason);
  if (api->instance == nullptr)
    throw DeviceError("webgpu: " + api->path + " cannot create a WebGPU instance");
  std::vector<webgpu::Adapter> adapters = webgpu::find_patiently(
      [&] { return webgpu::find_adapters(*api, options); },
      [&](auto& found) { return webgpu::choose_adapter(found, options.adapter) != nullptr; },
      pause_for);
  webgpu::Adapter* chosen = webgpu::choose_adapter(adapters, options.adapter);
  if (chosen != nullptr)
    return std::make_unique<webgpu::WebGpuDevice>(api, std::move(*chosen), options);
  std::string list;
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    const AdapterInfo& info = adapters[i].info;
    list += "\n    " + std::to_string(i) + ": " + info.device.name + ": " + info.reason;
  }
  if (list.empty()) throw DeviceError("webgpu: no adapter found");
  throw DeviceError(options.adapter < 0 ? "webgpu: no usable adapter; found:" + list
                                        : "webgpu: unknown adapter " +
                                              std::to_string(options.adapter) + "; found:" + list);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
