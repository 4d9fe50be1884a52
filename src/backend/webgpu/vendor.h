// SPDX-License-Identifier: MIT
// Differences between wgpu-native and Dawn: instances, adapter lists, shaders without bounds
// checks, waiting, timestamps, logs. Only vendor.cpp includes wgpu.h.
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
  // Returns the address of `name` in the library, or null.
  using Symbol = void* (*)(void* library, const char* name);
  static std::shared_ptr<Vendor> detect(void* library, Symbol symbol);

  virtual ~Vendor() = default;
  Vendor() = default;
  Vendor(const Vendor&) = delete;
  Vendor& operator=(const Vendor&) = delete;

  // Returns "wgpu-native 29.0.1.1" or "Dawn".
  [[nodiscard]] virtual std::string name() const = 0;
  virtual WGPUInstance create_instance(const Api& api) const = 0;
  // Returns the Vulkan, Metal and D3D12 adapters. The caller releases them.
  virtual std::vector<WGPUAdapter> adapters(const Api& api) const = 0;
  // Returns the struct to chain into the device descriptor. It is valid as long as this object.
  virtual WGPUChainedStruct* device_chain(bool checked) const = 0;
  virtual WGPUShaderModule create_module(const Api& api, WGPUDevice device,
                                         const WGPUShaderModuleDescriptor& descriptor,
                                         bool checked) const = 0;
  // Returns the library's number for a feature of webgpu.h. Older versions use different numbers.
  [[nodiscard]] virtual WGPUFeatureName feature_number(const Api&, WGPUFeatureName feature) const {
    return feature;
  }
  // Returns the numbers that versions of the library use for subgroup matrices. In another version,
  // the same number may be a different feature.
  [[nodiscard]] virtual std::vector<WGPUFeatureName> matrix_features() const { return {}; }
  // True if several threads may create pipelines or encode concurrently. If false, the library can
  // create pipelines in the background.
  [[nodiscard]] virtual bool concurrent() const = 0;
  // Makes the library report a lost device through the error callback. wgpu-native aborts the
  // process in flight(), and when a mapped buffer is read, if the device is already lost.
  virtual void report_loss(const Api&, WGPUQueue, WGPUBuffer) const {}
  // Submits command buffers in order. Returns a mark for wait().
  virtual std::uint64_t submit(const Api& api, WGPUQueue queue,
                               std::span<const WGPUCommandBuffer> commands) const = 0;
  // Invokes pending callbacks without waiting.
  virtual void poll(const Api& api, WGPUDevice device) const = 0;
  // Waits briefly for an event and invokes pending callbacks. Callers loop.
  virtual void wait_for_event(const Api& api, WGPUDevice device) const {
    poll(api, device);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  // Waits until the submission is done, or briefly, and invokes pending callbacks. Callers loop.
  virtual void wait(const Api& api, WGPUDevice device, std::uint64_t mark) const = 0;
  // Returns the nanoseconds per tick of a timestamp query.
  virtual double timestamp_period(WGPUQueue queue) const = 0;
};

}  // namespace tensorgrad::webgpu
