// SPDX-License-Identifier: MIT
// A device of the WebGPU library that computes nothing. Only where TENSORGRAD_IDLE_WEBGPU names it.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <stdexcept>

#include "backend/webgpu/device.h"
#include "idle_webgpu.h"

namespace tensorgrad::testing {

// What it was asked for since the program began.
inline IdleWebGpu& idle_webgpu() {
  void* const library = dlopen(TENSORGRAD_IDLE_WEBGPU, RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, "tensorgrad_idle_webgpu");
  if (found == nullptr) throw std::runtime_error(dlerror());
  return *reinterpret_cast<decltype(&tensorgrad_idle_webgpu)>(found)();
}

// It encodes by so many threads, at most.
inline std::shared_ptr<Device> idle_device(std::size_t encoders = 1) {
  WebGpuOptions options;
  options.library = TENSORGRAD_IDLE_WEBGPU;
  std::shared_ptr<Device> device = make_webgpu_device(options);
  dynamic_cast<webgpu::WebGpuDevice&>(*device).force_encoders(encoders);
  return device;
}

}  // namespace tensorgrad::testing
