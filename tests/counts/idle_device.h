// SPDX-License-Identifier: MIT
// A device of the WebGPU library that computes nothing. Requires TENSORGRAD_IDLE_WEBGPU, the path
// of the library.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <stdexcept>

#include "backend/webgpu/device.h"
#include "idle_webgpu.h"

namespace tensorgrad::testing {

// Returns the counters of the library since the start of the program.
inline IdleWebGpu& idle_webgpu() {
  void* const library = dlopen(TENSORGRAD_IDLE_WEBGPU, RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, "tensorgrad_idle_webgpu");
  if (found == nullptr) throw std::runtime_error(dlerror());
  return *reinterpret_cast<decltype(&tensorgrad_idle_webgpu)>(found)();
}

// Returns a device that encodes with at most `encoders` threads.
inline std::shared_ptr<Device> idle_device(std::size_t encoders = 1) {
  WebGpuOptions options;
  options.library = TENSORGRAD_IDLE_WEBGPU;
  std::shared_ptr<Device> device = make_webgpu_device(options);
  dynamic_cast<webgpu::WebGpuDevice&>(*device).force_encoders(encoders);
  return device;
}

}  // namespace tensorgrad::testing
