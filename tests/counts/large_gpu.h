// SPDX-License-Identifier: MIT
// A null device with the limits of wgpu-native on an NVIDIA GPU, as adapter.cpp caps them.
// bench/results/gpu.md counts what is planned for this device.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "tensorgrad/train/device.h"

namespace tensorgrad::testing {

inline DeviceOptions large_gpu() {
  DeviceLimits limits;
  limits.max_storage_bindings = 64;
  limits.max_binding_bytes = (std::int64_t{2} << 30) - 256;
  limits.max_buffer_bytes = std::int64_t{1} << 40;
  limits.max_workgroup_invocations = 1024;
  limits.max_workgroup_bytes = 48 << 10;
  DeviceOptions options;
  options.opened = make_null_device(limits);
  return options;
}

}  // namespace tensorgrad::testing
