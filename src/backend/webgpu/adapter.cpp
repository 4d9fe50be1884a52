// SPDX-License-Identifier: MIT
// Adapters: their properties and capabilities, and which of them `auto` can choose.
#include "backend/webgpu/adapter.h"

#include <algorithm>
#include <array>
#include <limits>

#include "backend/webgpu/vendor.h"

namespace tensorgrad::webgpu {
namespace {

struct Feature {
  WGPUFeatureName name;
  const char* text;
};
constexpr std::array<Feature, 3> kFeatures = {{{WGPUFeatureName_TimestampQuery, "timestamp-query"},
                                               {WGPUFeatureName_ShaderF16, "shader-f16"},
                                               {WGPUFeatureName_Subgroups, "subgroups"}}};

std::string backend_name(WGPUBackendType type) {
  switch (type) {
    case WGPUBackendType_Null: return "Null";
    case WGPUBackendType_WebGPU: return "WebGPU";
    case WGPUBackendType_D3D11: return "D3D11";
    case WGPUBackendType_D3D12: return "D3D12";
    case WGPUBackendType_Metal: return "Metal";
    case WGPUBackendType_Vulkan: return "Vulkan";
    case WGPUBackendType_OpenGL: return "OpenGL";
    case WGPUBackendType_OpenGLES: return "OpenGL ES";
    default: return "unknown backend";
  }
}

bool names_one_of(const std::string& name, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return name.find(word) != std::string::npos; });
}

// Browsers write "google swiftshader".
bool is_swiftshader(const std::string& name) {
  return names_one_of(name, {"SwiftShader", "swiftshader"});
}

bool names_software(const std::string& name) {
  return is_swiftshader(name) || names_one_of(name, {"llvmpipe", "lavapipe", "Basic Render"});
}

// Sets kind, usable and reason, and the flags of software devices.
void judge(const WGPUAdapterInfo& raw, const WebGpuOptions& options, AdapterInfo& info) {
  switch (raw.adapterType) {
    case WGPUAdapterType_DiscreteGPU: info.kind = "discrete"; break;
    case WGPUAdapterType_IntegratedGPU: info.kind = "integrated"; break;
    case WGPUAdapterType_CPU: info.kind = "cpu"; break;
    default: info.kind = "unknown"; break;
  }
  info.device.software = info.kind == "cpu" || names_software(info.device.name);
  // SwiftShader switches between the threads of a workgroup at each barrier; llvmpipe does not.
  // SwiftShader serves pages without a GPU. Natively, only tests use it, with the kernels for GPUs.
  info.device.slow_barriers =
      raw.backendType == WGPUBackendType_WebGPU && is_swiftshader(info.device.name);
  const bool known_backend =
      raw.backendType == WGPUBackendType_Vulkan || raw.backendType == WGPUBackendType_WebGPU ||
      raw.backendType == WGPUBackendType_Metal || raw.backendType == WGPUBackendType_D3D12;
  if (!known_backend) {
    info.reason = "its backend is " + backend_name(raw.backendType) +
                  ", not Vulkan, Metal, D3D12 or a browser's WebGPU";
  } else if (info.device.software && !options.allow_software) {
    info.reason =
        "a software rasterizer: slower than the cpu backend, used only if allow_software is set";
  } else {
    info.usable = true;
    info.reason = info.device.software ? "a software rasterizer, as requested" : "a GPU";
  }
}

// Returns the minimum subgroup size, or 0 if unknown. wgpu-native does not report it, so it is
// derived from the vendor. SwiftShader has subgroups of four, but takes minutes and gigabytes to
// compile shuffles.
int least_subgroup(const WGPUAdapterInfo& raw) {
  if (raw.subgroupMinSize > 0) return static_cast<int>(raw.subgroupMinSize);
  switch (raw.vendorID) {
    case 0x10de: return 32;  // NVIDIA
    case 0x1002: return 32;  // AMD
    case 0x106b: return 32;  // Apple
    case 0x8086: return 8;   // Intel
    case 0x10005: return 8;  // llvmpipe with 256-bit vectors
    default: return 0;
  }
}

Adapter describe(const Api& api, WGPUAdapter raw_adapter, const WebGpuOptions& options) {
  Adapter adapter;
  adapter.handle = Handle(api, raw_adapter);
  WGPUAdapterInfo raw = {};
  api.AdapterGetInfo(raw_adapter, &raw);
  DeviceInfo& device = adapter.info.device;
  device.backend = "webgpu";
  device.asynchronous = true;
  device.name = string_of(raw.device);
  if (device.name.empty()) device.name = string_of(raw.description);
  if (device.name.empty()) device.name = string_of(raw.vendor) + " " + string_of(raw.architecture);
  device.driver = api.vendor->name() + ", " + backend_name(raw.backendType);
  const std::string description = string_of(raw.description);
  if (!description.empty() && description != device.name) device.driver += ", " + description;
  if (raw.subgroupMinSize == raw.subgroupMaxSize)
    adapter.subgroup = static_cast<int>(raw.subgroupMinSize);
  adapter.least_subgroup = least_subgroup(raw);
  judge(raw, options, adapter.info);
  api.AdapterInfoFreeMembers(raw);
  WGPULimits limits = {};
  api.AdapterGetLimits(raw_adapter, &limits);
  device.limits = limits_of(limits);
  const auto has = [&](WGPUFeatureName feature) {
    return api.AdapterHasFeature(raw_adapter, api.vendor->feature_number(api, feature)) != 0U;
  };
  for (const Feature& feature : kFeatures) {
    if (has(feature.name)) device.features.emplace_back(feature.text);
  }
  device.stores_f16 = !options.default_limits && has(WGPUFeatureName_ShaderF16);
  adapter.timestamps = has(WGPUFeatureName_TimestampQuery);
  for (const WGPUFeatureName feature : api.vendor->matrix_features())
    adapter.info.offers_subgroup_matrix |= api.AdapterHasFeature(raw_adapter, feature) != 0U;
  return adapter;
}

int rank(const Adapter& adapter) {
  if (adapter.info.device.software) return 3;
  if (adapter.info.kind == "discrete") return 0;
  return adapter.info.kind == "integrated" ? 1 : 2;
}

}  // namespace

std::vector<Adapter> find_adapters(const Api& api, const WebGpuOptions& options) {
  std::vector<Adapter> adapters;
  for (WGPUAdapter raw : api.vendor->adapters(api)) {
    adapters.push_back(describe(api, raw, options));
  }
  std::stable_sort(adapters.begin(), adapters.end(),
                   [](const Adapter& a, const Adapter& b) { return rank(a) < rank(b); });
  return adapters;
}

Adapter* choose_adapter(std::vector<Adapter>& adapters, int asked_for) {
  if (asked_for >= 0) {
    const auto number = static_cast<std::size_t>(asked_for);
    return number < adapters.size() ? &adapters[number] : nullptr;
  }
  const auto found = std::find_if(adapters.begin(), adapters.end(),
                                  [](const Adapter& each) { return each.info.usable; });
  return found == adapters.end() ? nullptr : &*found;
}

std::vector<Adapter> find_patiently(const std::function<std::vector<Adapter>()>& find,
                                    const std::function<bool(std::vector<Adapter>&)>& good,
                                    const std::function<void(std::chrono::milliseconds)>& pause) {
  std::vector<Adapter> adapters = find();
  for (const int wait : {100, 400}) {
    if (good(adapters)) break;
    pause(std::chrono::milliseconds(wait));
    adapters = find();
  }
  return adapters;
}

Adapter external_adapter(const Api& api, const ExternalDevice& external) {
  Adapter adapter;
  if (external.adapter != nullptr) {
    api.AdapterAddRef(external.adapter);
    adapter = describe(api, external.adapter, {});
  } else {
    adapter.info.device.backend = "webgpu";
    adapter.info.device.asynchronous = true;
    adapter.info.device.name = "the application's device";
    adapter.info.device.driver = api.vendor->name();
  }
  DeviceInfo& device = adapter.info.device;
  device.features.clear();
  const auto has = [&](WGPUFeatureName feature) {
    return api.DeviceHasFeature(external.device, api.vendor->feature_number(api, feature)) != 0U;
  };
  for (const Feature& feature : kFeatures) {
    if (has(feature.name)) device.features.emplace_back(feature.text);
  }
  device.stores_f16 = has(WGPUFeatureName_ShaderF16);
  adapter.timestamps = has(WGPUFeatureName_TimestampQuery);
  return adapter;
}

WGPULimits default_limits() {
  const WGPULimits limits = WGPU_LIMITS_INIT;
  return limits;
}

DeviceLimits limits_of(const WGPULimits& limits) {
  const auto cap = [](std::uint64_t value, std::int64_t most) {
    return std::min(static_cast<std::int64_t>(
                        std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max())),
                    most);
  };
  DeviceLimits result;
  result.max_storage_bindings = static_cast<int>(cap(limits.maxStorageBuffersPerShaderStage, 64));
  // Element indices are u32.
  result.max_binding_bytes =
      cap(limits.maxStorageBufferBindingSize, std::int64_t{8} << 30) & ~255LL;
  result.max_buffer_bytes = cap(limits.maxBufferSize, std::int64_t{1} << 50) & ~255LL;
  result.max_workgroup_invocations = static_cast<int>(
      cap(std::min(limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupSizeX),
          1 << 16));
  result.max_workgroup_bytes = cap(limits.maxComputeWorkgroupStorageSize, 1 << 30);
  return result;
}

WGPULimits wanted_limits(const Api& api, WGPUAdapter adapter, bool defaults_only) {
  WGPULimits wanted = default_limits();
  if (defaults_only) return wanted;
  WGPULimits offered = {};
  api.AdapterGetLimits(adapter, &offered);
  wanted.maxStorageBuffersPerShaderStage = offered.maxStorageBuffersPerShaderStage;
  wanted.maxBindingsPerBindGroup = offered.maxBindingsPerBindGroup;
  wanted.maxStorageBufferBindingSize = offered.maxStorageBufferBindingSize;
  wanted.maxBufferSize = offered.maxBufferSize;
  wanted.maxComputeWorkgroupStorageSize = offered.maxComputeWorkgroupStorageSize;
  wanted.maxComputeInvocationsPerWorkgroup = offered.maxComputeInvocationsPerWorkgroup;
  wanted.maxComputeWorkgroupSizeX = offered.maxComputeWorkgroupSizeX;
  return wanted;
}

std::vector<WGPUFeatureName> wanted_features(const Api& api, WGPUAdapter adapter) {
  std::vector<WGPUFeatureName> features;
  for (const Feature& feature : kFeatures) {
    const WGPUFeatureName number = api.vendor->feature_number(api, feature.name);
    if (api.AdapterHasFeature(adapter, number)) features.push_back(number);
  }
  for (const WGPUFeatureName feature : api.vendor->matrix_features()) {
    if (api.AdapterHasFeature(adapter, feature)) features.push_back(feature);
  }
  return features;
}

}  // namespace tensorgrad::webgpu

namespace tensorgrad::inline TENSORGRAD_ABI {

std::vector<AdapterInfo> list_webgpu_adapters(const WebGpuOptions& options, std::string& reason) {
  reason.clear();
  const std::shared_ptr<const webgpu::Api> api = webgpu::load_api(options.library, reason);
  if (api == nullptr) return {};
  if (api->instance == nullptr) {
    reason = api->path + " cannot create a WebGPU instance";
    return {};
  }
  std::vector<AdapterInfo> infos;
  for (const webgpu::Adapter& adapter : webgpu::find_adapters(*api, options)) {
    infos.push_back(adapter.info);
  }
  if (infos.empty()) reason = api->path + " found no Vulkan, Metal or D3D12 adapter";
  return infos;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
