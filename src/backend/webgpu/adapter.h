// SPDX-License-Identifier: MIT
// The adapters of a library, best first, and their capabilities.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "backend/webgpu/api.h"

namespace tensorgrad::webgpu {

struct Adapter {
  Handle<WGPUAdapter> handle;
  AdapterInfo info;
  bool timestamps = false;
  int subgroup = 0;        // subgroup size; 0: not constant
  int least_subgroup = 0;  // minimum subgroup size; 0: unknown
};

// Returns discrete GPUs first and software rasterizers last, otherwise in the library's order.
std::vector<Adapter> find_adapters(const Api& api, const WebGpuOptions& options);

// Returns the adapter with index `asked_for` or, if that is negative, the first usable one. Null if
// there is none.
Adapter* choose_adapter(std::vector<Adapter>& adapters, int asked_for);
// Returns the result of `find`. A driver that is starting up, or recovering from a reset, has no
// adapters at first. Until `good` is true, calls `find` again after 100 and then after 400
// milliseconds, waiting with `pause`.
std::vector<Adapter> find_patiently(const std::function<std::vector<Adapter>()>& find,
                                    const std::function<bool(std::vector<Adapter>&)>& good,
                                    const std::function<void(std::chrono::milliseconds)>& pause);

// Returns what is known about the application's device.
Adapter external_adapter(const Api& api, const ExternalDevice& external);

// Returns limits that request the defaults.
WGPULimits default_limits();
DeviceLimits limits_of(const WGPULimits& limits);
// Returns the limits to request: the adapter's if larger limits help, otherwise the defaults.
WGPULimits wanted_limits(const Api& api, WGPUAdapter adapter, bool defaults_only);
// Returns the features to request, as far as the adapter has them.
std::vector<WGPUFeatureName> wanted_features(const Api& api, WGPUAdapter adapter);

}  // namespace tensorgrad::webgpu
