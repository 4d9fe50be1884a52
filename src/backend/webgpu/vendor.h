// SPDX-License-Identifier: MIT
// What wgpu-native and Dawn do differently, or one of them alone can: instances, adapter lists,
// shaders without bounds checks, waiting, timestamps, logs. vendor.cpp alone includes wgpu.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "backend/webgpu/api.h"

namespace tensorgrad::webgpu {

class Vendor {
 public:
  // `symbol` finds an address in the library, or null.
  using Symbol = void* (*)(void* library, const char* name);
  static std::shared_ptr<Vendor> detect(void* library, Symbol symbol);

  virtual ~Vendor() = default;
  Vendor() = default;
  Vendor(const Vendor&) = delete;
  Vendor& operator=(const Vendor&) = delete;

  // "wgpu-native 29.0.1.1"; "Dawn".
  [[nodiscard]] virtual std::string name() const = 0;
  virtual WGPUInstance create_instance(const Api& api) const = 0;
  // Vulkan, Metal and D3D12 adapters; the caller releases them.
  virtual std::vector<WGPUAdapter> adapters(const Api& api) const = 0;
  // Chained into the device descriptor; lives as long as this.
  virtual WGPUChainedStruct* device_chain(bool checked) const = 0;
  virtual WGPUShaderModule create_module(const Api& api, WGPUDevice device,
                                         const WGPUShaderModuleDescriptor& descriptor,
                                         bool checked) const = 0;
  // What the library calls a feature of webgpu.h, if its numbers are older.
  [[nodiscard]] virtual WGPUFeatureName number_of(const Api&, WGPUFeatureName feature) const {
    return feature;
  }
  // What versions of the library call matrices of a subgroup; the number may be another feature's.
  [[nodiscard]] virtual std::vector<WGPUFeatureName> matrix_features() const { return {}; }
  // May several threads make pipelines, or encode, at a time? If not, the library makes pipelines
  // in the background when asked to.
  [[nodiscard]] virtual bool concurrent() const = 0;
  // Makes the library report a lost device through the callback for errors. wgpu-native aborts the
  // process in submit(), and in reading a mapped buffer, if the device is lost by then.
  virtual void report_loss(const Api&, WGPUQueue, WGPUBuffer) const {}
  // Submits command buffers, to be run in order; gives a mark for wait().
  virtual std::uint64_t submit(const Api& api, WGPUQueue queue,
                               std::span<const WGPUCommandBuffer> commands) const = 0;
  // Calls the callbacks that are due. Does not wait.
  virtual void poll(const Api& api, WGPUDevice device) const = 0;
  // The same, and waits a moment for one. Callers loop.
  virtual void wait_for_event(const Api& api, WGPUDevice device) const {
    poll(api, device);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  // The same, after waiting: until the submission is done, or for a moment. Callers loop.
  virtual void wait(const Api& api, WGPUDevice device, std::uint64_t mark) const = 0;
  // Nanoseconds per tick of a timestamp query.
  virtual double timestamp_period(WGPUQueue queue) const = 0;
};

}  // namespace tensorgrad::webgpu
