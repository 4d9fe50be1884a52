// SPDX-License-Identifier: MIT
// Replaces backend/webgpu if the library is built without it (TENSORGRAD_WEBGPU=OFF).
#include <thread>

#include "backend/backend.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr const char* kWhy =
    "webgpu: this build of tensorgrad has no WebGPU (TENSORGRAD_WEBGPU=OFF)";

}  // namespace

std::vector<AdapterInfo> list_webgpu_adapters(const WebGpuOptions&, std::string& reason) {
  reason = kWhy;
  return {};
}

std::unique_ptr<Device> make_webgpu_device(const WebGpuOptions&) { throw DeviceError(kWhy); }

std::unique_ptr<Device> adopt_webgpu_device(const ExternalDevice&, const WebGpuOptions&) {
  throw DeviceError(kWhy);
}

void pause_for(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI
