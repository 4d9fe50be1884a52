// SPDX-License-Identifier: MIT
// A WebGPU device that the application has already.
#pragma once

#include <atomic>

// webgpu.h's WGPUInstance, WGPUAdapter, WGPUDevice and WGPUBuffer are pointers to these.
struct WGPUInstanceImpl;
struct WGPUAdapterImpl;
struct WGPUDeviceImpl;
struct WGPUBufferImpl;

namespace tensorgrad {

// WebGPU objects of the application's own: what is compiled runs on its device, in the queue that
// its other work is submitted to, in the order of the calls; bind_input() and bind_output() give it
// buffers of that device. References are kept. The library that they come from is looked for in the
// process; where it was opened by hand, DeviceOptions::webgpu_library is its path.
struct ExternalDevice {
  WGPUInstanceImpl* instance = nullptr;
  WGPUDeviceImpl* device = nullptr;
  WGPUAdapterImpl* adapter = nullptr;  // may be null: it tells the name alone
  // What the application's device-lost callback sets, or null. It is looked at before work is
  // submitted, which then throws DeviceLostError; wgpu-native ends a process that submits to a lost
  // device. Must outlive what is compiled.
  const std::atomic<bool>* lost = nullptr;
  bool operator==(const ExternalDevice&) const = default;
};

}  // namespace tensorgrad
