// SPDX-License-Identifier: MIT
// The adapters that a library offers, best first, and what each can do.
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
  int subgroup = 0;        // threads of one; 0: not always the same number
  int least_subgroup = 0;  // that a subgroup has at least; 0: not known
};

// Discrete GPUs first, software rasterisers last; otherwise in the library's order.
std::vector<Adapter> find_adapters(const Api& api, const WebGpuOptions& options);

// The first adapter that may be used, or the one that is asked for; null where there is none.
Adapter* choose_adapter(std::vector<Adapter>& adapters, int asked_for);
// What `find` gives. A driver that is just coming up, or comes back from a reset, has no adapters
// at first: until `good`, it is asked again after 100 and after 400 milliseconds, between which
// `pause` waits.
std::vector<Adapter> find_patiently(const std::function<std::vector<Adapter>()>& find,
                                    const std::function<bool(std::vector<Adapter>&)>& good,
                                    const std::function<void(std::chrono::milliseconds)>& pause);

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
