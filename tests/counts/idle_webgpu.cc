// SPDX-License-Identifier: MIT
// A WebGPU library in which every call succeeds and nothing is computed. With it, the instructions
// of the encoder are counted without those of a driver, and so are its calls (idle_webgpu.h). It
// passes for wgpu-native. Callbacks are called at once; mapped memory is zero.
#include "idle_webgpu.h"

#include <webgpu/webgpu.h>
#include <webgpu/wgpu.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

tensorgrad::testing::IdleWebGpu asked;

char thing;  // stands for every object except buffers

struct Buffer {
  std::int64_t bytes;
  bool storage;
};

template <class T>
void raise(std::atomic<T>& most, T value) {
  T known = most;
  while (known < value && !most.compare_exchange_weak(known, value)) {
  }
}

template <class T>
T object() {
  return reinterpret_cast<T>(&thing);
}

// Calls the callback with `said` and an empty message.
template <class Info, class... Said>
WGPUFuture answer(const Info& info, Said... said) {
  info.callback(said..., WGPUStringView{}, info.userdata1, info.userdata2);
  return {};
}

WGPUStatus fill(WGPULimits* limits) {
  *limits = WGPU_LIMITS_INIT;
  limits->maxStorageBufferBindingSize = 1ULL << 30;
  limits->maxBufferSize = 1ULL << 30;
  limits->maxStorageBuffersPerShaderStage = 8;
  limits->maxComputeInvocationsPerWorkgroup = limits->maxComputeWorkgroupSizeX = 256;
  limits->maxComputeWorkgroupStorageSize = 16384;
  return WGPUStatus_Success;
}

}  // namespace

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): as webgpu.h calls them
#define TENSORGRAD_RELEASES(type) \
  void wgpu##type##Release(WGPU##type) {}
TENSORGRAD_RELEASES(Adapter)
TENSORGRAD_RELEASES(BindGroup)
TENSORGRAD_RELEASES(BindGroupLayout)
TENSORGRAD_RELEASES(CommandBuffer)
TENSORGRAD_RELEASES(CommandEncoder)
TENSORGRAD_RELEASES(ComputePassEncoder)
TENSORGRAD_RELEASES(ComputePipeline)
TENSORGRAD_RELEASES(Device)
TENSORGRAD_RELEASES(Instance)
TENSORGRAD_RELEASES(PipelineLayout)
TENSORGRAD_RELEASES(QuerySet)
TENSORGRAD_RELEASES(Queue)
TENSORGRAD_RELEASES(ShaderModule)
#undef TENSORGRAD_RELEASES

#define TENSORGRAD_CREATES(type)                                                 \
  WGPU##type wgpuDeviceCreate##type(WGPUDevice, WGPU##type##Descriptor const*) { \
    return object<WGPU##type>();                                                 \
  }
TENSORGRAD_CREATES(BindGroupLayout)
TENSORGRAD_CREATES(CommandEncoder)
TENSORGRAD_CREATES(PipelineLayout)
TENSORGRAD_CREATES(QuerySet)
TENSORGRAD_CREATES(ShaderModule)
#undef TENSORGRAD_CREATES

WGPUBindGroup wgpuDeviceCreateBindGroup(WGPUDevice, WGPUBindGroupDescriptor const*) {
  ++asked.bind_groups;
  return object<WGPUBindGroup>();
}
WGPUBuffer wgpuDeviceCreateBuffer(WGPUDevice, WGPUBufferDescriptor const* descriptor) {
  auto* const made = new Buffer{static_cast<std::int64_t>(descriptor->size),
                                (descriptor->usage & WGPUBufferUsage_Storage) != 0};
  ++asked.buffers;
  if (made->storage) {
    raise(asked.most_storage_bytes, asked.storage_bytes += made->bytes);
  } else {
    asked.other_bytes += made->bytes;
  }
  return reinterpret_cast<WGPUBuffer>(made);
}
void wgpuBufferRelease(WGPUBuffer buffer) {
  const auto* const made = reinterpret_cast<Buffer*>(buffer);
  (made->storage ? asked.storage_bytes : asked.other_bytes) -= made->bytes;
  delete made;
}

WGPUComputePipeline wgpuDeviceCreateComputePipeline(WGPUDevice,
                                                    WGPUComputePipelineDescriptor const*) {
  using Clock = std::chrono::steady_clock;
  raise(asked.most_making, ++asked.making);
  const Clock::time_point last = Clock::now() + std::chrono::milliseconds(asked.patience_ms);
  while (asked.most_making < asked.expected_making) {
    if (Clock::now() > last) asked.expected_making = 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  --asked.making;
  ++asked.pipelines;
  return object<WGPUComputePipeline>();
}

// Not called, because this library lets several threads create pipelines.
WGPUFuture wgpuDeviceCreateComputePipelineAsync(WGPUDevice, WGPUComputePipelineDescriptor const*,
                                                WGPUCreateComputePipelineAsyncCallbackInfo) {
  std::abort();
}

uint32_t wgpuGetVersion() { return 29U << 24U; }
WGPUInstance wgpuCreateInstance(WGPUInstanceDescriptor const*) { return object<WGPUInstance>(); }
void wgpuInstanceAddRef(WGPUInstance) {}
void wgpuInstanceProcessEvents(WGPUInstance) {}
size_t wgpuInstanceEnumerateAdapters(WGPUInstance, WGPUInstanceEnumerateAdapterOptions const*,
                                     WGPUAdapter* adapters) {
  if (adapters != nullptr) *adapters = object<WGPUAdapter>();
  return 1;
}
WGPUFuture wgpuInstanceRequestAdapter(WGPUInstance, WGPURequestAdapterOptions const*,
                                      WGPURequestAdapterCallbackInfo info) {
  return answer(info, WGPURequestAdapterStatus_Success, object<WGPUAdapter>());
}

void wgpuAdapterAddRef(WGPUAdapter) {}
WGPUStatus wgpuAdapterGetInfo(WGPUAdapter, WGPUAdapterInfo* info) {
  *info = {};
  info->device = {"idle", 4};
  info->adapterType = WGPUAdapterType_DiscreteGPU;
  info->backendType = WGPUBackendType_Vulkan;
  return WGPUStatus_Success;
}
void wgpuAdapterInfoFreeMembers(WGPUAdapterInfo) {}
WGPUStatus wgpuAdapterGetLimits(WGPUAdapter, WGPULimits* limits) { return fill(limits); }
WGPUBool wgpuAdapterHasFeature(WGPUAdapter, WGPUFeatureName) { return WGPU_FALSE; }
WGPUFuture wgpuAdapterRequestDevice(WGPUAdapter, WGPUDeviceDescriptor const*,
                                    WGPURequestDeviceCallbackInfo info) {
  return answer(info, WGPURequestDeviceStatus_Success, object<WGPUDevice>());
}

void wgpuDeviceAddRef(WGPUDevice) {}
void wgpuDeviceDestroy(WGPUDevice) {}
WGPUStatus wgpuDeviceGetLimits(WGPUDevice, WGPULimits* limits) { return fill(limits); }
WGPUQueue wgpuDeviceGetQueue(WGPUDevice) { return object<WGPUQueue>(); }
WGPUBool wgpuDeviceHasFeature(WGPUDevice, WGPUFeatureName) { return WGPU_FALSE; }
WGPUBool wgpuDevicePoll(WGPUDevice, WGPUBool, WGPUSubmissionIndex const*) { return WGPU_TRUE; }
void wgpuDevicePushErrorScope(WGPUDevice, WGPUErrorFilter) {}
WGPUFuture wgpuDevicePopErrorScope(WGPUDevice, WGPUPopErrorScopeCallbackInfo info) {
  ++asked.error_scopes;
  return answer(info, WGPUPopErrorScopeStatus_Success, WGPUErrorType_NoError);
}

void wgpuBufferAddRef(WGPUBuffer) {}
uint64_t wgpuBufferGetSize(WGPUBuffer) { return 1ULL << 30; }
WGPUBufferUsage wgpuBufferGetUsage(WGPUBuffer) { return WGPUBufferUsage_Storage; }
void* wgpuBufferGetMappedRange(WGPUBuffer, size_t, size_t size) {
  static std::vector<char> zeros;
  if (zeros.size() < size) zeros.resize(size);
  return zeros.data();
}
void const* wgpuBufferGetConstMappedRange(WGPUBuffer buffer, size_t from, size_t size) {
  return wgpuBufferGetMappedRange(buffer, from, size);
}
WGPUFuture wgpuBufferMapAsync(WGPUBuffer, WGPUMapMode, size_t, size_t,
                              WGPUBufferMapCallbackInfo info) {
  return answer(info, WGPUMapAsyncStatus_Success);
}
void wgpuBufferUnmap(WGPUBuffer) {}

WGPUComputePassEncoder wgpuCommandEncoderBeginComputePass(WGPUCommandEncoder,
                                                          WGPUComputePassDescriptor const*) {
  ++asked.passes;
  return object<WGPUComputePassEncoder>();
}
void wgpuCommandEncoderCopyBufferToBuffer(WGPUCommandEncoder, WGPUBuffer, uint64_t, WGPUBuffer,
                                          uint64_t, uint64_t) {}
WGPUCommandBuffer wgpuCommandEncoderFinish(WGPUCommandEncoder, WGPUCommandBufferDescriptor const*) {
  return object<WGPUCommandBuffer>();
}
void wgpuCommandEncoderResolveQuerySet(WGPUCommandEncoder, WGPUQuerySet, uint32_t, uint32_t,
                                       WGPUBuffer, uint64_t) {}
void wgpuComputePassEncoderDispatchWorkgroups(WGPUComputePassEncoder, uint32_t, uint32_t,
                                              uint32_t) {
  ++asked.dispatches;
}
void wgpuComputePassEncoderEnd(WGPUComputePassEncoder) {}
void wgpuComputePassEncoderSetBindGroup(WGPUComputePassEncoder, uint32_t, WGPUBindGroup, size_t,
                                        uint32_t const*) {}
void wgpuComputePassEncoderSetPipeline(WGPUComputePassEncoder, WGPUComputePipeline) {}

WGPUFuture wgpuQueueOnSubmittedWorkDone(WGPUQueue, WGPUQueueWorkDoneCallbackInfo info) {
  return answer(info, WGPUQueueWorkDoneStatus_Success);
}
void wgpuQueueSubmit(WGPUQueue, size_t, WGPUCommandBuffer const*) {}
WGPUSubmissionIndex wgpuQueueSubmitForIndex(WGPUQueue, size_t, WGPUCommandBuffer const*) {
  ++asked.submits;
  return 1;
}
void wgpuQueueWriteBuffer(WGPUQueue, WGPUBuffer, uint64_t, void const*, size_t) {}
// NOLINTEND(readability-identifier-naming)

tensorgrad::testing::IdleWebGpu* tensorgrad_idle_webgpu() { return &asked; }

}  // extern "C"
