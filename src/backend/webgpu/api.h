// SPDX-License-Identifier: MIT
// The functions of webgpu.h that the backend uses, loaded at run time, and RAII handles. The
// header's own declarations are not used.
#pragma once

#define WGPU_SKIP_DECLARATIONS
#include <webgpu/webgpu.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tensorgrad::webgpu {

// X(name): wgpu<name> is loaded with the type WGPUProc<name>.
#define TENSORGRAD_WEBGPU_FUNCTIONS(X)    \
  X(AdapterAddRef)                        \
  X(AdapterGetInfo)                       \
  X(AdapterGetLimits)                     \
  X(AdapterHasFeature)                    \
  X(AdapterInfoFreeMembers)               \
  X(AdapterRelease)                       \
  X(AdapterRequestDevice)                 \
  X(BindGroupLayoutRelease)               \
  X(BindGroupRelease)                     \
  X(BufferAddRef)                         \
  X(BufferGetConstMappedRange)            \
  X(BufferGetMappedRange)                 \
  X(BufferGetSize)                        \
  X(BufferGetUsage)                       \
  X(BufferMapAsync)                       \
  X(BufferRelease)                        \
  X(BufferUnmap)                          \
  X(CommandBufferRelease)                 \
  X(CommandEncoderBeginComputePass)       \
  X(CommandEncoderCopyBufferToBuffer)     \
  X(CommandEncoderFinish)                 \
  X(CommandEncoderRelease)                \
  X(CommandEncoderResolveQuerySet)        \
  X(ComputePassEncoderDispatchWorkgroups) \
  X(ComputePassEncoderEnd)                \
  X(ComputePassEncoderRelease)            \
  X(ComputePassEncoderSetBindGroup)       \
  X(ComputePassEncoderSetPipeline)        \
  X(ComputePipelineRelease)               \
  X(CreateInstance)                       \
  X(DeviceAddRef)                         \
  X(DeviceCreateBindGroup)                \
  X(DeviceCreateBindGroupLayout)          \
  X(DeviceCreateBuffer)                   \
  X(DeviceCreateCommandEncoder)           \
  X(DeviceCreateComputePipeline)          \
  X(DeviceCreateComputePipelineAsync)     \
  X(DeviceCreatePipelineLayout)           \
  X(DeviceCreateQuerySet)                 \
  X(DeviceCreateShaderModule)             \
  X(DeviceDestroy)                        \
  X(DeviceGetLimits)                      \
  X(DeviceGetQueue)                       \
  X(DeviceHasFeature)                     \
  X(DevicePopErrorScope)                  \
  X(DevicePushErrorScope)                 \
  X(DeviceRelease)                        \
  X(InstanceAddRef)                       \
  X(InstanceProcessEvents)                \
  X(InstanceRelease)                      \
  X(InstanceRequestAdapter)               \
  X(PipelineLayoutRelease)                \
  X(QuerySetRelease)                      \
  X(QueueOnSubmittedWorkDone)             \
  X(QueueRelease)                         \
  X(QueueSubmit)                          \
  X(QueueWriteBuffer)                     \
  X(ShaderModuleRelease)

class Vendor;

struct Api {
// NOLINTBEGIN(readability-identifier-naming): as webgpu.h calls them
#define TENSORGRAD_WEBGPU_FIELD(name) WGPUProc##name name = nullptr;
  TENSORGRAD_WEBGPU_FUNCTIONS(TENSORGRAD_WEBGPU_FIELD)
#undef TENSORGRAD_WEBGPU_FIELD
  // NOLINTEND(readability-identifier-naming)

  std::string path;                // path of the library
  std::shared_ptr<Vendor> vendor;  // differences of this library
  // The application's instance if its device is used. Others are never released: GPU drivers that
  // are unloaded and reloaded with each instance exhaust thread-local storage after a few dozen
  // times. Null if the library cannot create one.
  WGPUInstance instance = nullptr;
};

// Loads a library, once per process and path; it stays loaded. Returns null if none can be loaded.
// `reason` then lists what was tried and how to get a library.
//
// Devices share an instance if the library locks its objects, and in a browser. Otherwise, each
// result has an instance that no other uses: a thread that processes the events of an instance also
// invokes callbacks of its other devices, and Dawn crashes if another thread uses these.
std::shared_ptr<const Api> load_api(const std::string& library, std::string& reason);

// Returns the functions of an already loaded library, without an instance. Searches for this path
// or, if it is empty, the process itself (linked) and then the usual names. Returns null, with the
// reason in `reason`, if none is found.
std::unique_ptr<Api> find_loaded_api(const std::string& library, std::string& reason);

inline WGPUStringView view(std::string_view text) { return {text.data(), text.size()}; }

inline std::string string_of(WGPUStringView text) {
  if (text.data == nullptr) return {};
  if (text.length == WGPU_STRLEN) return text.data;
  return {text.data, text.length};
}

// True if the process is about to exit, and GPU drivers with it, or is a forked child. Handles then
// release nothing.
inline std::atomic<bool> process_ends{false};

// Owns one reference to a WebGPU object.
template <class T>
class Handle {
 public:
  Handle() = default;
  Handle(const Api& api, T value) : api_(&api), value_(value) {}
  Handle(Handle&& other) noexcept
      : api_(other.api_), value_(std::exchange(other.value_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(value_, other.value_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  void reset() {
    if (value_ != nullptr && !process_ends) release(*api_, value_);
    value_ = nullptr;
  }
  [[nodiscard]] T get() const { return value_; }
  explicit operator bool() const { return value_ != nullptr; }

 private:
  static void release(const Api& api, WGPUAdapter v) { api.AdapterRelease(v); }
  static void release(const Api& api, WGPUBindGroup v) { api.BindGroupRelease(v); }
  static void release(const Api& api, WGPUBindGroupLayout v) { api.BindGroupLayoutRelease(v); }
  static void release(const Api& api, WGPUBuffer v) { api.BufferRelease(v); }
  static void release(const Api& api, WGPUCommandBuffer v) { api.CommandBufferRelease(v); }
  static void release(const Api& api, WGPUCommandEncoder v) { api.CommandEncoderRelease(v); }
  static void release(const Api& api, WGPUComputePassEncoder v) {
    api.ComputePassEncoderRelease(v);
  }
  static void release(const Api& api, WGPUComputePipeline v) { api.ComputePipelineRelease(v); }
  static void release(const Api& api, WGPUDevice v) { api.DeviceRelease(v); }
  static void release(const Api& api, WGPUInstance v) { api.InstanceRelease(v); }
  static void release(const Api& api, WGPUPipelineLayout v) { api.PipelineLayoutRelease(v); }
  static void release(const Api& api, WGPUQuerySet v) { api.QuerySetRelease(v); }
  static void release(const Api& api, WGPUQueue v) { api.QueueRelease(v); }
  static void release(const Api& api, WGPUShaderModule v) { api.ShaderModuleRelease(v); }

  const Api* api_ = nullptr;
  T value_ = nullptr;
};

}  // namespace tensorgrad::webgpu
