// SPDX-License-Identifier: MIT
// The adapters that a library offers, best first, and what each can do.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "backend/webgpu/api.h"

namespace tensorgrad::webgpu {

struct Adapter {
  Handle<WGPUAdapter> handle;
  AdapterInfo info;
  bool timestamps = false;
  int subgroup = 0;  // threads of one; 0: not always the same number
};

// Discrete GPUs first, software rasterisers last; otherwise in the library's order.
std::vector<Adapter> find_adapters(const Api& api, const WebGpuOptions& options);

// What is known of the application's device.
Adapter external_adapter(const Api& api, const ExternalDevice& external);

// An empty struct that asks for the defaults.
WGPULimits default_limits();
DeviceLimits limits_of(const WGPULimits& limits);
// What we ask a device for: the adapter's word where more helps, the defaults elsewhere.
WGPULimits wanted_limits(const Api& api, WGPUAdapter adapter, bool defaults_only);
// Features we ask for where they are offered.
std::vector<WGPUFeatureName> wanted_features(const Api& api, WGPUAdapter adapter);

}  // namespace tensorgrad::webgpu
