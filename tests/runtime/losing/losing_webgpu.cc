// SPDX-License-Identifier: MIT
// Wraps the WebGPU library it is linked to, but loses the device before or after the n-th call of
// one function. tests/runtime/webgpu_loss_points_test.cpp loads it and selects the call with
// losing_arm(). The library calls no callback for the loss; later calls fail.
#include <dlfcn.h>
#include <webgpu/webgpu.h>

#include <atomic>
#include <string_view>
#include <type_traits>

namespace {

struct Point {
  const char* function = "";
  std::atomic<long> calls{0};
  long at = 0;
  bool after = false;
  std::atomic<bool> lost{false};
};
Point point;
std::atomic<WGPUDevice> device{nullptr};

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

void lose() {
  auto* const victim = device.load();
  if (victim != nullptr && !point.lost.exchange(true))
    next<WGPUProcDeviceDestroy>("wgpuDeviceDestroy")(victim);
}

// Calls a function of the library. Loses the device if this call was selected.
template <class F, class... Arguments>
auto forward(const char* name, Arguments... arguments) {
  static const F f = next<F>(name);
  const bool counted = point.function == std::string_view(name);
  const bool here = counted && ++point.calls == point.at;
  if (here && !point.after) lose();
  if constexpr (std::is_void_v<decltype(f(arguments...))>) {
    f(arguments...);
    if (here && point.after) lose();
  } else {
    auto result = f(arguments...);
    if (here && point.after) lose();
    return result;
  }
}

}  // namespace

extern "C" {
void losing_arm(const char* function, long at, bool after);
long losing_calls();
bool losing_lost();

// Counts the calls of `function` from now on, and loses the device at call `at` (0: never).
void losing_arm(const char* function, long at, bool after) {
  point.function = function;
  point.calls = 0;
  point.at = at;
  point.after = after;
  point.lost = false;
}
long losing_calls() { return point.calls; }
bool losing_lost() { return point.lost; }

WGPUQueue wgpuDeviceGetQueue(WGPUDevice d) {
  device = d;
  return next<WGPUProcDeviceGetQueue>("wgpuDeviceGetQueue")(d);
}

#define FORWARD(Result, Name, parameters, ...) \
  Result wgpu##Name parameters { return forward<WGPUProc##Name>("wgpu" #Name, __VA_ARGS__); }

FORWARD(const void*, BufferGetConstMappedRange, (WGPUBuffer b, size_t from, size_t size), b, from,
        size)
FORWARD(void*, BufferGetMappedRange, (WGPUBuffer b, size_t from, size_t size), b, from, size)
FORWARD(WGPUFuture, BufferMapAsync,
        (WGPUBuffer b, WGPUMapMode mode, size_t from, size_t size, WGPUBufferMapCallbackInfo info),
        b, mode, from, size, info)
FORWARD(void, BufferUnmap, (WGPUBuffer b), b)
FORWARD(WGPUComputePassEncoder, CommandEncoderBeginComputePass,
        (WGPUCommandEncoder e, WGPUComputePassDescriptor const* d), e, d)
FORWARD(WGPUCommandBuffer, CommandEncoderFinish,
        (WGPUCommandEncoder e, WGPUCommandBufferDescriptor const* d), e, d)
FORWARD(WGPUBindGroup, DeviceCreateBindGroup, (WGPUDevice e, WGPUBindGroupDescriptor const* d), e,
        d)
FORWARD(WGPUBuffer, DeviceCreateBuffer, (WGPUDevice e, WGPUBufferDescriptor const* d), e, d)
FORWARD(WGPUCommandEncoder, DeviceCreateCommandEncoder,
        (WGPUDevice e, WGPUCommandEncoderDescriptor const* d), e, d)
FORWARD(WGPUComputePipeline, DeviceCreateComputePipeline,
        (WGPUDevice e, WGPUComputePipelineDescriptor const* d), e, d)
FORWARD(WGPUShaderModule, DeviceCreateShaderModule,
        (WGPUDevice e, WGPUShaderModuleDescriptor const* d), e, d)
FORWARD(WGPUFuture, DevicePopErrorScope, (WGPUDevice e, WGPUPopErrorScopeCallbackInfo info), e,
        info)
FORWARD(WGPUFuture, QueueOnSubmittedWorkDone, (WGPUQueue q, WGPUQueueWorkDoneCallbackInfo info), q,
        info)

// Vendor::report_loss() writes zero bytes to ask the library whether the device is lost. Such a
// write never loses the device, because the code that follows relies on its answer.
void wgpuQueueWriteBuffer(WGPUQueue q, WGPUBuffer b, uint64_t from, const void* data, size_t size) {
  if (size == 0) {
    next<WGPUProcQueueWriteBuffer>("wgpuQueueWriteBuffer")(q, b, from, data, size);
  } else {
    forward<WGPUProcQueueWriteBuffer>("wgpuQueueWriteBuffer", q, b, from, data, size);
  }
}

}  // extern "C"
