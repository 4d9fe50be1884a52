// SPDX-License-Identifier: MIT
// WebGPU in a browser; replaces dynamic_library.cpp and vendor.cpp. Implements the used functions
// of webgpu.h with navigator.gpu. Unpacks structs, so that browser.js only receives numbers.
#include <array>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <vector>

#include "backend/backend.h"
#include "backend/webgpu/api.h"
#include "backend/webgpu/browser_js.h"
#include "backend/webgpu/vendor.h"
#include "base/event_loop.h"

namespace tensorgrad::webgpu {
namespace {

using Receiver = std::function<void(const TgEvent&)>;

// Callbacks by event id. Each receives one event or all events of its id.
class Receivers {
 public:
  int once(Receiver receiver) { return add(std::move(receiver), true); }
  int always(Receiver receiver) { return add(std::move(receiver), false); }

  // Delivers all pending events. Returns false if there were none.
  bool take_events() {
    bool any = false;
    TgEvent event = {};
    while (tg_js_next_event(&event)) {
      any = true;
      const auto found = waiting_.find(event.id);
      if (found != waiting_.end()) {
        const Receiver receiver = found->second.receiver;
        if (found->second.once || event.kind == kTgEventDropped) waiting_.erase(found);
        if (event.kind != kTgEventDropped) receiver(event);
      }
      std::free(event.message);
    }
    return any;
  }

 private:
  struct Entry {
    Receiver receiver;
    bool once;
  };
  int add(Receiver receiver, bool once) {
    waiting_[++last_] = {std::move(receiver), once};
    return last_;
  }

  std::map<int, Entry> waiting_;
  int last_ = 0;
};

// Never destroyed: devices may outlive static objects.
Receivers& receivers() {
  static Receivers& all = *new Receivers;
  return all;
}

void wait_for_events() {
  if (receivers().take_events()) return;
  {
    const SuspendedCall suspended;
    tg_js_sleep(-1);
  }
  receivers().take_events();
}

template <class T>
int number(T handle) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle));
}

template <class T>
T handle(int number) {
  return reinterpret_cast<T>(static_cast<std::uintptr_t>(number));
}

bool fine(const TgEvent& event) { return event.kind == kTgEventDone; }

WGPUStringView message_of(const TgEvent& event) {
  return {event.message, event.message == nullptr ? 0 : WGPU_STRLEN};
}

int size_of(WGPUStringView text) {
  if (text.data == nullptr) return 0;
  return static_cast<int>(text.length == WGPU_STRLEN ? std::string_view(text.data).size()
                                                     : text.length);
}

const char* feature_text(WGPUFeatureName feature) {
  switch (feature) {
    case WGPUFeatureName_TimestampQuery: return "timestamp-query";
    case WGPUFeatureName_ShaderF16: return "shader-f16";
    case WGPUFeatureName_Subgroups: return "subgroups";
    default: return "";
  }
}

constexpr std::size_t kLimits = 31;

// Calls f for each limit, in the order of browser.js.
template <class F>
void each_limit(WGPULimits& l, const F& f) {
  const auto all = [&](auto&... limit) {
    static_assert(sizeof...(limit) == kLimits);
    (f(limit), ...);
  };
  all(l.maxTextureDimension1D, l.maxTextureDimension2D, l.maxTextureDimension3D,
      l.maxTextureArrayLayers, l.maxBindGroups, l.maxBindGroupsPlusVertexBuffers,
      l.maxBindingsPerBindGroup, l.maxDynamicUniformBuffersPerPipelineLayout,
      l.maxDynamicStorageBuffersPerPipelineLayout, l.maxSampledTexturesPerShaderStage,
      l.maxSamplersPerShaderStage, l.maxStorageBuffersPerShaderStage,
      l.maxStorageTexturesPerShaderStage, l.maxUniformBuffersPerShaderStage,
      l.maxUniformBufferBindingSize, l.maxStorageBufferBindingSize,
      l.minUniformBufferOffsetAlignment, l.minStorageBufferOffsetAlignment, l.maxVertexBuffers,
      l.maxBufferSize, l.maxVertexAttributes, l.maxVertexBufferArrayStride,
      l.maxInterStageShaderVariables, l.maxColorAttachments, l.maxColorAttachmentBytesPerSample,
      l.maxComputeWorkgroupStorageSize, l.maxComputeInvocationsPerWorkgroup,
      l.maxComputeWorkgroupSizeX, l.maxComputeWorkgroupSizeY, l.maxComputeWorkgroupSizeZ,
      l.maxComputeWorkgroupsPerDimension);
}

WGPUStatus get_limits(int object, WGPULimits* out) {
  std::array<double, kLimits> values = {};
  tg_js_limits(object, values.data());
  std::size_t i = 0;
  each_limit(*out, [&]<class T>(T& limit) { limit = static_cast<T>(values[i++]); });
  return WGPUStatus_Success;
}

// Returns the limits to request; -1 means the default.
std::array<double, kLimits> wanted_values(const WGPULimits* wanted) {
  std::array<double, kLimits> values;
  values.fill(-1);
  if (wanted == nullptr) return values;
  WGPULimits limits = *wanted;
  std::size_t i = 0;
  each_limit(limits, [&]<class T>(T& limit) {
    const double value = limit == static_cast<T>(-1) ? -1.0 : static_cast<double>(limit);
    values[i++] = value;
  });
  return values;
}

void fill_references(Api& api) {
  api.AdapterAddRef = [](WGPUAdapter object) { tg_js_add_ref(number(object)); };
  api.BufferAddRef = [](WGPUBuffer object) { tg_js_add_ref(number(object)); };
  api.DeviceAddRef = [](WGPUDevice object) { tg_js_add_ref(number(object)); };
  api.InstanceAddRef = [](WGPUInstance) {};
  api.InstanceRelease = [](WGPUInstance) {};
  const auto set = []<class T>(void (*& release)(T)) {
    release = [](T object) { tg_js_release(number(object)); };
  };
  set(api.AdapterRelease);
  set(api.BindGroupLayoutRelease);
  set(api.BindGroupRelease);
  set(api.BufferRelease);
  set(api.CommandBufferRelease);
  set(api.CommandEncoderRelease);
  set(api.ComputePassEncoderRelease);
  set(api.ComputePipelineRelease);
  set(api.DeviceRelease);
  set(api.PipelineLayoutRelease);
  set(api.QuerySetRelease);
  set(api.QueueRelease);
  set(api.ShaderModuleRelease);
}

WGPUStatus adapter_info(WGPUAdapter adapter, WGPUAdapterInfo* out) {
  TgAdapterInfo info = {};
  tg_js_adapter_info(number(adapter), &info);
  *out = {};
  out->vendor = {info.texts[0], WGPU_STRLEN};
  out->architecture = {info.texts[1], WGPU_STRLEN};
  out->device = {info.texts[2], WGPU_STRLEN};
  out->description = {info.texts[3], WGPU_STRLEN};
  out->backendType = WGPUBackendType_WebGPU;
  out->adapterType = info.software != 0 ? WGPUAdapterType_CPU : WGPUAdapterType_Unknown;
  // SwiftShader takes minutes to compile subgroup shuffles.
  if (info.software == 0) {
    out->subgroupMinSize = static_cast<std::uint32_t>(info.least_subgroup);
    out->subgroupMaxSize = static_cast<std::uint32_t>(info.most_subgroup);
  }
  return WGPUStatus_Success;
}

WGPUFuture request_adapter(WGPUInstance, const WGPURequestAdapterOptions*,
                           WGPURequestAdapterCallbackInfo info) {
  tg_js_request_adapter(receivers().once([info](const TgEvent& event) {
    info.callback(
        event.object != 0 ? WGPURequestAdapterStatus_Success : WGPURequestAdapterStatus_Unavailable,
        handle<WGPUAdapter>(event.object), message_of(event), info.userdata1, info.userdata2);
  }));
  return {};
}

WGPUFuture request_device(WGPUAdapter adapter, const WGPUDeviceDescriptor* wanted,
                          WGPURequestDeviceCallbackInfo info) {
  std::string features;
  for (std::size_t i = 0; i < wanted->requiredFeatureCount; ++i)
    features += std::string(feature_text(wanted->requiredFeatures[i])) + ",";
  const std::array<double, kLimits> limits = wanted_values(wanted->requiredLimits);
  const int made = receivers().once([info](const TgEvent& event) {
    info.callback(fine(event) ? WGPURequestDeviceStatus_Success : WGPURequestDeviceStatus_Error,
                  handle<WGPUDevice>(event.object), message_of(event), info.userdata1,
                  info.userdata2);
  });
  const int lost = receivers().once([info = wanted->deviceLostCallbackInfo](const TgEvent& event) {
    if (info.callback == nullptr) return;
    const bool destroyed = event.kind == kTgEventDestroyed;
    info.callback(nullptr,
                  destroyed ? WGPUDeviceLostReason_Destroyed : WGPUDeviceLostReason_Unknown,
                  message_of(event), info.userdata1, info.userdata2);
  });
  const int error =
      receivers().always([info = wanted->uncapturedErrorCallbackInfo](const TgEvent& event) {
        if (info.callback == nullptr) return;
        info.callback(nullptr, WGPUErrorType_Validation, message_of(event), info.userdata1,
                      info.userdata2);
      });
  tg_js_request_device(number(adapter), features.c_str(), limits.data(), made, lost, error);
  return {};
}

void fill_devices(Api& api) {
  api.CreateInstance = [](const WGPUInstanceDescriptor*) { return handle<WGPUInstance>(1); };
  api.InstanceProcessEvents = [](WGPUInstance) { wait_for_events(); };
  api.InstanceRequestAdapter = request_adapter;
  api.AdapterGetInfo = adapter_info;
  api.AdapterInfoFreeMembers = [](WGPUAdapterInfo info) {
    for (const WGPUStringView& text :
         {info.vendor, info.architecture, info.device, info.description})
      std::free(const_cast<char*>(text.data));
  };
  api.AdapterGetLimits = [](WGPUAdapter adapter, WGPULimits* out) {
    return get_limits(number(adapter), out);
  };
  api.AdapterHasFeature = [](WGPUAdapter adapter, WGPUFeatureName feature) -> WGPUBool {
    return tg_js_has_feature(number(adapter), feature_text(feature)) ? 1 : 0;
  };
  api.AdapterRequestDevice = request_device;
  api.DeviceGetLimits = [](WGPUDevice device, WGPULimits* out) {
    return get_limits(number(device), out);
  };
  api.DeviceHasFeature = [](WGPUDevice device, WGPUFeatureName feature) -> WGPUBool {
    return tg_js_has_feature(number(device), feature_text(feature)) ? 1 : 0;
  };
  api.DeviceGetQueue = [](WGPUDevice device) {
    return handle<WGPUQueue>(tg_js_queue(number(device)));
  };
  api.DeviceDestroy = [](WGPUDevice device) { tg_js_destroy(number(device)); };
  api.DevicePushErrorScope = [](WGPUDevice device, WGPUErrorFilter filter) {
    tg_js_push_scope(number(device), static_cast<int>(filter));
  };
  api.DevicePopErrorScope = [](WGPUDevice device, WGPUPopErrorScopeCallbackInfo info) {
    tg_js_pop_scope(number(device), receivers().once([info](const TgEvent& event) {
      info.callback(WGPUPopErrorScopeStatus_Success,
                    fine(event) ? WGPUErrorType_NoError : WGPUErrorType_Validation,
                    message_of(event), info.userdata1, info.userdata2);
    }));
    return WGPUFuture{};
  };
}

// Returns the copies of mapped buffers' contents, by buffer number.
std::map<int, std::vector<std::byte>>& mapped() {
  static auto& all = *new std::map<int, std::vector<std::byte>>;
  return all;
}

void fill_buffers(Api& api) {
  api.DeviceCreateBuffer = [](WGPUDevice device, const WGPUBufferDescriptor* wanted) {
    return handle<WGPUBuffer>(tg_js_create_buffer(number(device), static_cast<double>(wanted->size),
                                                  static_cast<int>(wanted->usage),
                                                  wanted->label.data, size_of(wanted->label)));
  };
  api.BufferGetSize = [](WGPUBuffer buffer) {
    return static_cast<std::uint64_t>(tg_js_buffer_size(number(buffer)));
  };
  api.BufferGetUsage = [](WGPUBuffer buffer) {
    return static_cast<WGPUBufferUsage>(tg_js_buffer_usage(number(buffer)));
  };
  api.BufferMapAsync = [](WGPUBuffer buffer, WGPUMapMode mode, std::size_t offset, std::size_t size,
                          WGPUBufferMapCallbackInfo info) {
    const int id = receivers().once([info](const TgEvent& event) {
      info.callback(fine(event) ? WGPUMapAsyncStatus_Success : WGPUMapAsyncStatus_Error,
                    message_of(event), info.userdata1, info.userdata2);
    });
    tg_js_map(number(buffer), static_cast<int>(mode), static_cast<double>(offset),
              static_cast<double>(size), id);
    return WGPUFuture{};
  };
  api.BufferGetConstMappedRange = [](WGPUBuffer buffer, std::size_t offset, std::size_t size) {
    std::vector<std::byte>& copy = mapped()[number(buffer)];
    copy.resize(size);
    tg_js_read_mapped(number(buffer), static_cast<double>(offset), static_cast<double>(size),
                      copy.data());
    return static_cast<const void*>(copy.data());
  };
  api.BufferUnmap = [](WGPUBuffer buffer) {
    mapped().erase(number(buffer));
    tg_js_unmap(number(buffer));
  };
}

int type_number(WGPUBufferBindingType type) {
  if (type == WGPUBufferBindingType_Uniform) return 0;
  return type == WGPUBufferBindingType_Storage ? 1 : 2;
}

WGPUBindGroupLayout create_group_layout(WGPUDevice device,
                                        const WGPUBindGroupLayoutDescriptor* wanted) {
  std::vector<int> entries;
  for (std::size_t i = 0; i < wanted->entryCount; ++i) {
    const WGPUBufferBindingLayout& buffer = wanted->entries[i].buffer;
    entries.push_back(type_number(buffer.type));
    entries.push_back(buffer.hasDynamicOffset != 0U ? 1 : 0);
    entries.push_back(static_cast<int>(buffer.minBindingSize));
  }
  return handle<WGPUBindGroupLayout>(tg_js_create_group_layout(
      number(device), entries.data(), static_cast<int>(wanted->entryCount), wanted->label.data,
      size_of(wanted->label)));
}

WGPUBindGroup create_group(WGPUDevice device, const WGPUBindGroupDescriptor* wanted) {
  std::vector<double> entries;
  for (std::size_t i = 0; i < wanted->entryCount; ++i) {
    const WGPUBindGroupEntry& entry = wanted->entries[i];
    entries.push_back(number(entry.buffer));
    entries.push_back(static_cast<double>(entry.offset));
    entries.push_back(static_cast<double>(entry.size));
  }
  return handle<WGPUBindGroup>(tg_js_create_group(
      number(device), number(wanted->layout), entries.data(), static_cast<int>(wanted->entryCount),
      wanted->label.data, size_of(wanted->label)));
}

void fill_kernels(Api& api) {
  api.DeviceCreateShaderModule = [](WGPUDevice device, const WGPUShaderModuleDescriptor* wanted) {
    const auto* source = reinterpret_cast<const WGPUShaderSourceWGSL*>(wanted->nextInChain);
    return handle<WGPUShaderModule>(tg_js_create_module(number(device), source->code.data,
                                                        size_of(source->code), wanted->label.data,
                                                        size_of(wanted->label)));
  };
  api.DeviceCreateBindGroupLayout = create_group_layout;
  api.DeviceCreateBindGroup = create_group;
  api.DeviceCreatePipelineLayout = [](WGPUDevice device,
                                      const WGPUPipelineLayoutDescriptor* wanted) {
    std::vector<int> layouts;
    for (std::size_t i = 0; i < wanted->bindGroupLayoutCount; ++i)
      layouts.push_back(number(wanted->bindGroupLayouts[i]));
    return handle<WGPUPipelineLayout>(tg_js_create_pipeline_layout(
        number(device), layouts.data(), static_cast<int>(layouts.size())));
  };
  api.DeviceCreateComputePipeline = [](WGPUDevice device,
                                       const WGPUComputePipelineDescriptor* wanted) {
    return handle<WGPUComputePipeline>(tg_js_create_pipeline(
        number(device), number(wanted->layout), number(wanted->compute.module), wanted->label.data,
        size_of(wanted->label)));
  };
  api.DeviceCreateComputePipelineAsync = [](WGPUDevice device,
                                            const WGPUComputePipelineDescriptor* wanted,
                                            WGPUCreateComputePipelineAsyncCallbackInfo info) {
    const int id = receivers().once([info](const TgEvent& event) {
      info.callback(fine(event) ? WGPUCreatePipelineAsyncStatus_Success
                                : WGPUCreatePipelineAsyncStatus_ValidationError,
                    handle<WGPUComputePipeline>(event.object), message_of(event), info.userdata1,
                    info.userdata2);
    });
    tg_js_create_pipeline_async(number(device), number(wanted->layout),
                                number(wanted->compute.module), wanted->label.data,
                                size_of(wanted->label), id);
    return WGPUFuture{};
  };
  api.DeviceCreateQuerySet = [](WGPUDevice device, const WGPUQuerySetDescriptor* wanted) {
    return handle<WGPUQuerySet>(
        tg_js_create_queries(number(device), static_cast<int>(wanted->count)));
  };
}

void fill_commands(Api& api) {
  api.DeviceCreateCommandEncoder = [](WGPUDevice device, const WGPUCommandEncoderDescriptor*) {
    return handle<WGPUCommandEncoder>(tg_js_create_encoder(number(device)));
  };
  api.CommandEncoderBeginComputePass = [](WGPUCommandEncoder encoder,
                                          const WGPUComputePassDescriptor* wanted) {
    const WGPUPassTimestampWrites* writes = wanted == nullptr ? nullptr : wanted->timestampWrites;
    return handle<WGPUComputePassEncoder>(
        writes == nullptr ? tg_js_begin_pass(number(encoder), 0, 0, 0)
                          : tg_js_begin_pass(number(encoder), number(writes->querySet),
                                             static_cast<int>(writes->beginningOfPassWriteIndex),
                                             static_cast<int>(writes->endOfPassWriteIndex)));
  };
  api.ComputePassEncoderSetPipeline = [](WGPUComputePassEncoder pass,
                                         WGPUComputePipeline pipeline) {
    tg_js_set_pipeline(number(pass), number(pipeline));
  };
  api.ComputePassEncoderSetBindGroup = [](WGPUComputePassEncoder pass, std::uint32_t index,
                                          WGPUBindGroup group, std::size_t count,
                                          const std::uint32_t* offsets) {
    tg_js_set_group(number(pass), static_cast<int>(index), number(group),
                    count == 0 ? -1.0 : static_cast<double>(*offsets));
  };
  api.ComputePassEncoderDispatchWorkgroups = [](WGPUComputePassEncoder pass, std::uint32_t x,
                                                std::uint32_t y, std::uint32_t z) {
    tg_js_dispatch(number(pass), static_cast<int>(x), static_cast<int>(y), static_cast<int>(z));
  };
  api.ComputePassEncoderEnd = [](WGPUComputePassEncoder pass) { tg_js_end_pass(number(pass)); };
  api.CommandEncoderCopyBufferToBuffer = [](WGPUCommandEncoder encoder, WGPUBuffer from,
                                            std::uint64_t from_offset, WGPUBuffer to,
                                            std::uint64_t to_offset, std::uint64_t size) {
    tg_js_copy_buffer(number(encoder), number(from), static_cast<double>(from_offset), number(to),
                      static_cast<double>(to_offset), static_cast<double>(size));
  };
  api.CommandEncoderResolveQuerySet = [](WGPUCommandEncoder encoder, WGPUQuerySet queries,
                                         std::uint32_t first, std::uint32_t count, WGPUBuffer to,
                                         std::uint64_t offset) {
    tg_js_resolve_queries(number(encoder), number(queries), static_cast<int>(first),
                          static_cast<int>(count), number(to), static_cast<double>(offset));
  };
  api.CommandEncoderFinish = [](WGPUCommandEncoder encoder, const WGPUCommandBufferDescriptor*) {
    return handle<WGPUCommandBuffer>(tg_js_finish(number(encoder)));
  };
  api.QueueSubmit = [](WGPUQueue queue, std::size_t count, const WGPUCommandBuffer* commands) {
    std::vector<int> numbers;
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(number(commands[i]));
    tg_js_submit(number(queue), numbers.data(), static_cast<int>(count));
  };
  api.QueueWriteBuffer = [](WGPUQueue queue, WGPUBuffer buffer, std::uint64_t offset,
                            const void* data, std::size_t size) {
    tg_js_write_buffer(number(queue), number(buffer), static_cast<double>(offset), data,
                       static_cast<double>(size));
  };
  api.QueueOnSubmittedWorkDone = [](WGPUQueue queue, WGPUQueueWorkDoneCallbackInfo info) {
    tg_js_on_work_done(number(queue), receivers().once([info](const TgEvent& event) {
      info.callback(fine(event) ? WGPUQueueWorkDoneStatus_Success : WGPUQueueWorkDoneStatus_Error,
                    message_of(event), info.userdata1, info.userdata2);
    }));
    return WGPUFuture{};
  };
}

class Browser : public Vendor {
 public:
  [[nodiscard]] std::string name() const override { return "navigator.gpu"; }

  WGPUInstance create_instance(const Api& api) const override {
    return api.CreateInstance(nullptr);
  }

  std::vector<WGPUAdapter> adapters(const Api& api) const override {
    struct Answer {
      WGPUAdapter adapter = nullptr;
      bool done = false;
    } answer;
    WGPURequestAdapterCallbackInfo info = {};
    info.userdata1 = &answer;
    info.callback = [](WGPURequestAdapterStatus, WGPUAdapter adapter, WGPUStringView, void* to,
                       void*) { *static_cast<Answer*>(to) = {adapter, true}; };
    api.InstanceRequestAdapter(api.instance, nullptr, info);
    while (!answer.done) wait_for_events();
    if (answer.adapter == nullptr) return {};
    return {answer.adapter};
  }

  WGPUChainedStruct* device_chain(bool) const override { return nullptr; }

  WGPUShaderModule create_module(const Api& api, WGPUDevice device,
                                 const WGPUShaderModuleDescriptor& descriptor,
                                 bool) const override {
    return api.DeviceCreateShaderModule(device, &descriptor);
  }

  [[nodiscard]] bool concurrent() const override { return false; }

  std::uint64_t submit(const Api& api, WGPUQueue queue,
                       std::span<const WGPUCommandBuffer> commands) const override {
    api.QueueSubmit(queue, commands.size(), commands.data());
    return 0;
  }

  void poll(const Api&, WGPUDevice) const override { receivers().take_events(); }
  void wait_for_event(const Api&, WGPUDevice) const override { wait_for_events(); }
  void wait(const Api&, WGPUDevice, std::uint64_t) const override { wait_for_events(); }

  double timestamp_period(WGPUQueue) const override { return 1.0; }
};

std::unique_ptr<Api> make_api(std::string& reason) {
  if (!tg_js_has_webgpu()) {
    reason =
        "this browser has no navigator.gpu or no WebAssembly.Suspending; it needs WebGPU, JSPI and "
        "a "
        "page from https:// or localhost";
    return nullptr;
  }
  auto api = std::make_unique<Api>();
  fill_references(*api);
  fill_devices(*api);
  fill_buffers(*api);
  fill_kernels(*api);
  fill_commands(*api);
  api->path = "navigator.gpu";
  api->vendor = std::make_shared<Browser>();
  return api;
}

}  // namespace

std::unique_ptr<Api> find_loaded_api(const std::string&, std::string& reason) {
  return make_api(reason);
}

std::shared_ptr<const Api> load_api(const std::string&, std::string& reason) {
  static std::shared_ptr<const Api> loaded;
  if (loaded != nullptr) return loaded;
  std::unique_ptr<Api> made = make_api(reason);
  if (made == nullptr) return nullptr;
  made->instance = made->vendor->create_instance(*made);
  return loaded = std::move(made);
}

}  // namespace tensorgrad::webgpu

namespace tensorgrad::inline TENSORGRAD_ABI {

void pause_for(std::chrono::milliseconds time) {
  const SuspendedCall suspended;
  tg_js_sleep(static_cast<double>(time.count()));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
