// SPDX-License-Identifier: MIT
// Implementations of Vendor for wgpu-native and Dawn. Only this file uses their extensions.
#include "backend/webgpu/vendor.h"

#include <webgpu/wgpu.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

#include "backend/backend.h"
#include "base/env.h"

namespace tensorgrad::webgpu {
namespace {

// ---- wgpu-native -----------------------------------------------------------------------------

struct NativeFunctions {
  decltype(&::wgpuGetVersion) get_version = nullptr;
  decltype(&::wgpuSetLogCallback) set_log_callback = nullptr;
  decltype(&::wgpuSetLogLevel) set_log_level = nullptr;
  decltype(&::wgpuInstanceEnumerateAdapters) enumerate_adapters = nullptr;
  decltype(&::wgpuDevicePoll) device_poll = nullptr;
  decltype(&::wgpuQueueSubmitForIndex) submit_for_index = nullptr;
  decltype(&::wgpuQueueGetTimestampPeriod) timestamp_period = nullptr;
  decltype(&::wgpuDeviceCreateShaderModuleTrusted) create_trusted = nullptr;
};

void print_log(WGPULogLevel level, WGPUStringView message, void*) {
  std::fprintf(stderr, "wgpu (%d): %s\n", static_cast<int>(level), string_of(message).c_str());
}

WGPULogLevel log_level(const std::string& name) {
  const std::array<std::pair<const char*, WGPULogLevel>, 5> levels = {
      {{"error", WGPULogLevel_Error},
       {"warn", WGPULogLevel_Warn},
       {"info", WGPULogLevel_Info},
       {"debug", WGPULogLevel_Debug},
       {"trace", WGPULogLevel_Trace}}};
  for (const auto& [word, level] : levels) {
    if (name == word) return level;
  }
  if (!name.empty()) {
    refuse_env("TENSORGRAD_WGPU_LOG", name, "error, warn, info, debug or trace");
  }
  return WGPULogLevel_Off;
}

class WgpuNative : public Vendor {
 public:
  explicit WgpuNative(const NativeFunctions& functions) : functions_(functions) {}

  [[nodiscard]] std::string name() const override {
    const std::uint32_t version = functions_.get_version();
    std::string text = "wgpu-native ";
    for (int shift = 24; shift >= 0; shift -= 8) {
      text += std::to_string((version >> shift) & 255u) + (shift > 0 ? "." : "");
    }
    return text;
  }

  WGPUInstance create_instance(const Api& api) const override {
    const WGPULogLevel level = log_level(env("TENSORGRAD_WGPU_LOG"));
    if (functions_.set_log_callback != nullptr && level != WGPULogLevel_Off) {
      functions_.set_log_callback(print_log, nullptr);
    }
    if (functions_.set_log_level != nullptr) functions_.set_log_level(level);
    WGPUInstanceExtras extras = {};
    extras.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
    extras.backends =
        WGPUInstanceBackend_Vulkan | WGPUInstanceBackend_Metal | WGPUInstanceBackend_DX12;
    extras.flags = WGPUInstanceFlag_DiscardHalLabels;
    WGPUInstanceDescriptor descriptor = {};
    descriptor.nextInChain = &extras.chain;
    return api.CreateInstance(&descriptor);
  }

  std::vector<WGPUAdapter> adapters(const Api& api) const override {
    WGPUInstanceEnumerateAdapterOptions options = {};
    options.backends =
        WGPUInstanceBackend_Vulkan | WGPUInstanceBackend_Metal | WGPUInstanceBackend_DX12;
    std::vector<WGPUAdapter> found(functions_.enumerate_adapters(api.instance, &options, nullptr));
    if (!found.empty())
      found.resize(functions_.enumerate_adapters(api.instance, &options, found.data()));
    return found;
  }

  WGPUChainedStruct* device_chain(bool) const override { return nullptr; }

  WGPUShaderModule create_module(const Api& api, WGPUDevice device,
                                 const WGPUShaderModuleDescriptor& descriptor,
                                 bool checked) const override {
    if (checked || functions_.create_trusted == nullptr) {
      return api.DeviceCreateShaderModule(device, &descriptor);
    }
    return functions_.create_trusted(device, &descriptor, WGPUShaderRuntimeChecks_None);
  }

  [[nodiscard]] bool concurrent() const override { return true; }

  // wgpu-native has its own number for subgroups.
  [[nodiscard]] WGPUFeatureName feature_number(const Api&, WGPUFeatureName feature) const override {
    if (feature != WGPUFeatureName_Subgroups) return feature;
    return static_cast<WGPUFeatureName>(WGPUNativeFeature_Subgroup);
  }

  // An empty write triggers the report.
  void report_loss(const Api& api, WGPUQueue queue, WGPUBuffer buffer) const override {
    constexpr std::uint32_t kZero = 0;
    api.QueueWriteBuffer(queue, buffer, 0, &kZero, 0);
  }

  std::uint64_t submit(const Api&, WGPUQueue queue,
                       std::span<const WGPUCommandBuffer> commands) const override {
    return functions_.submit_for_index(queue, commands.size(), commands.data());
  }

  void poll(const Api&, WGPUDevice device) const override {
    functions_.device_poll(device, WGPU_FALSE, nullptr);
  }

  void wait(const Api&, WGPUDevice device, std::uint64_t mark) const override {
    const WGPUSubmissionIndex index = mark;
    functions_.device_poll(device, WGPU_TRUE, &index);
  }

  double timestamp_period(WGPUQueue queue) const override {
    return functions_.timestamp_period == nullptr ? 1.0 : functions_.timestamp_period(queue);
  }

 private:
  NativeFunctions functions_;
};

// ---- Dawn ------------------------------------------------------------------------------------

// One chained struct and its sType, declared here to avoid Dawn's own header.
constexpr auto kDawnTogglesDescriptor = static_cast<WGPUSType>(0x0005000A);
struct DawnToggles {
  WGPUChainedStruct chain;
  std::size_t enabled_count;
  const char* const* enabled;
  std::size_t disabled_count;
  const char* const* disabled;
};

struct AdapterAnswer {
  WGPUAdapter adapter = nullptr;
  bool done = false;
};

void take_adapter(WGPURequestAdapterStatus status, WGPUAdapter adapter, WGPUStringView,
                  void* answer, void*) {
  auto* out = static_cast<AdapterAnswer*>(answer);
  if (status == WGPURequestAdapterStatus_Success) out->adapter = adapter;
  out->done = true;
}

struct DeviceOffer {
  WGPUDevice device = nullptr;
  bool done = false;
};

void take_offer(WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView, void* offer, void*) {
  auto* out = static_cast<DeviceOffer*>(offer);
  out->device = device;
  out->done = true;
}

struct Verdict {
  bool fine = false, done = false;
};

void take_verdict(WGPUPopErrorScopeStatus, WGPUErrorType type, WGPUStringView, void* verdict,
                  void*) {
  auto* out = static_cast<Verdict*>(verdict);
  out->fine = type == WGPUErrorType_NoError;
  out->done = true;
}

// True if a device with only this feature supports f16 in shaders. Afterwards, the adapter cannot
// create another device.
bool is_f16(const Api& api, WGPUAdapter adapter, WGPUFeatureName feature) {
  if (api.AdapterHasFeature(adapter, feature) == 0U) return false;
  WGPUDeviceDescriptor wanted = {};
  wanted.requiredFeatureCount = 1;
  wanted.requiredFeatures = &feature;
  DeviceOffer offer;
  WGPURequestDeviceCallbackInfo on_device = {};
  on_device.mode = WGPUCallbackMode_AllowProcessEvents;
  on_device.callback = take_offer;
  on_device.userdata1 = &offer;
  api.AdapterRequestDevice(adapter, &wanted, on_device);
  while (!offer.done) api.InstanceProcessEvents(api.instance);
  if (offer.device == nullptr) return false;
  const Handle device(api, offer.device);
  WGPUShaderSourceWGSL source = {};
  source.chain.sType = WGPUSType_ShaderSourceWGSL;
  source.code = view("enable f16; @compute @workgroup_size(1) fn main() {}");
  WGPUShaderModuleDescriptor descriptor = {};
  descriptor.nextInChain = &source.chain;
  api.DevicePushErrorScope(device.get(), WGPUErrorFilter_Validation);
  const Handle module(api, api.DeviceCreateShaderModule(device.get(), &descriptor));
  Verdict verdict;
  WGPUPopErrorScopeCallbackInfo on_verdict = {};
  on_verdict.mode = WGPUCallbackMode_AllowProcessEvents;
  on_verdict.callback = take_verdict;
  on_verdict.userdata1 = &verdict;
  api.DevicePopErrorScope(device.get(), on_verdict);
  while (!verdict.done) api.InstanceProcessEvents(api.instance);
  return verdict.fine;
}

// The numbers of these features before webgpu.h was stable. Some builds still use them.
struct OlderNumber {
  WGPUFeatureName feature, older;
};
constexpr std::array<OlderNumber, 3> kOlderNumbers = {
    {{WGPUFeatureName_TimestampQuery, static_cast<WGPUFeatureName>(0x3)},
     {WGPUFeatureName_ShaderF16, static_cast<WGPUFeatureName>(0xA)},
     {WGPUFeatureName_Subgroups, static_cast<WGPUFeatureName>(0x11)}}};
constexpr auto kOlderF16 = kOlderNumbers[1].older;

class Dawn : public Vendor {
 public:
  Dawn() {
    toggles_.chain.sType = kDawnTogglesDescriptor;
    toggles_.enabled = kTrusted.data();
    toggles_.enabled_count = kTrusted.size();
    toggles_.disabled = kExact.data();
    toggles_.disabled_count = kExact.size();
    offering_.chain.sType = kDawnTogglesDescriptor;
    offering_.enabled = kOffering.data();
    offering_.enabled_count = kOffering.size();
  }

  [[nodiscard]] std::string name() const override { return "Dawn"; }

  WGPUInstance create_instance(const Api& api) const override {
    const WGPUInstanceDescriptor descriptor = {};
    return api.CreateInstance(&descriptor);
  }

  // Dawn has no list of adapters, so one is requested per backend.
  std::vector<WGPUAdapter> adapters(const Api& api) const override {
    std::vector<WGPUAdapter> found;
    for (const WGPUBackendType backend :
         {WGPUBackendType_Vulkan, WGPUBackendType_Metal, WGPUBackendType_D3D12}) {
      if (WGPUAdapter adapter = request(api, backend)) found.push_back(adapter);
    }
    return found;
  }

  WGPUChainedStruct* device_chain(bool checked) const override {
    return checked ? nullptr : &toggles_.chain;
  }

  WGPUShaderModule create_module(const Api& api, WGPUDevice device,
                                 const WGPUShaderModuleDescriptor& descriptor,
                                 bool) const override {
    return api.DeviceCreateShaderModule(device, &descriptor);
  }

  // A build does not report which numbers it uses, so both are tried.
  [[nodiscard]] WGPUFeatureName feature_number(const Api& api,
                                               WGPUFeatureName feature) const override {
    std::call_once(tried_, [&] {
      older_ = !is_f16(api, WGPUFeatureName_ShaderF16) && is_f16(api, kOlderF16);
    });
    for (const OlderNumber& each : kOlderNumbers) {
      if (older_ && each.feature == feature) return each.older;
    }
    return feature;
  }

  // chromium_experimental_subgroup_matrix in Dawn versions of 2025 and of 2026.
  [[nodiscard]] std::vector<WGPUFeatureName> matrix_features() const override {
    return {static_cast<WGPUFeatureName>(0x00050034), static_cast<WGPUFeatureName>(0x00050037)};
  }

  [[nodiscard]] bool concurrent() const override { return false; }

  std::uint64_t submit(const Api& api, WGPUQueue queue,
                       std::span<const WGPUCommandBuffer> commands) const override {
    api.QueueSubmit(queue, commands.size(), commands.data());
    return 0;
  }

  void poll(const Api& api, WGPUDevice) const override { api.InstanceProcessEvents(api.instance); }

  void wait(const Api& api, WGPUDevice, std::uint64_t) const override {
    api.InstanceProcessEvents(api.instance);
    std::this_thread::sleep_for(std::chrono::microseconds(5));
  }

  double timestamp_period(WGPUQueue) const override { return 1.0; }

 private:
  static constexpr std::array<const char*, 2> kTrusted = {"disable_robustness",
                                                          "disable_workgroup_init"};

  // If this toggle is on, timestamps are multiples of 65.5 us.
  static constexpr std::array<const char*, 1> kExact = {"timestamp_quantization"};

  // Without these toggles, Dawn hides experimental features, and f16 on NVIDIA GPUs.
  static constexpr std::array<const char*, 3> kOffering = {
      "allow_unsafe_apis", "use_vulkan_memory_model", "vulkan_enable_f16_on_nvidia"};

  WGPUAdapter request(const Api& api, WGPUBackendType backend) const {
    WGPURequestAdapterOptions options = {};
    options.nextInChain = &offering_.chain;
    options.featureLevel = WGPUFeatureLevel_Core;
    options.powerPreference = WGPUPowerPreference_HighPerformance;
    options.backendType = backend;
    AdapterAnswer answer;
    WGPURequestAdapterCallbackInfo info = {};
    info.mode = WGPUCallbackMode_AllowProcessEvents;
    info.callback = take_adapter;
    info.userdata1 = &answer;
    api.InstanceRequestAdapter(api.instance, &options, info);
    while (!answer.done) api.InstanceProcessEvents(api.instance);
    return answer.adapter;
  }

  // True if the number means f16 on any adapter.
  [[nodiscard]] bool is_f16(const Api& api, WGPUFeatureName feature) const {
    for (WGPUAdapter each : adapters(api)) {
      const Handle adapter(api, each);
      if (webgpu::is_f16(api, adapter.get(), feature)) return true;
    }
    return false;
  }

  mutable DawnToggles toggles_ = {}, offering_ = {};
  mutable std::once_flag tried_;
  mutable bool older_ = false;
};

}  // namespace

std::shared_ptr<Vendor> Vendor::detect(void* library, Symbol symbol) {
  const auto find = [&]<class F>(F& function, const char* name) {
    function = reinterpret_cast<F>(symbol(library, name));
  };
  NativeFunctions native;
  find(native.get_version, "wgpuGetVersion");
  find(native.set_log_callback, "wgpuSetLogCallback");
  find(native.set_log_level, "wgpuSetLogLevel");
  find(native.enumerate_adapters, "wgpuInstanceEnumerateAdapters");
  find(native.device_poll, "wgpuDevicePoll");
  find(native.submit_for_index, "wgpuQueueSubmitForIndex");
  find(native.timestamp_period, "wgpuQueueGetTimestampPeriod");
  find(native.create_trusted, "wgpuDeviceCreateShaderModuleTrusted");
  const bool is_native = native.get_version != nullptr && native.enumerate_adapters != nullptr &&
                         native.device_poll != nullptr && native.submit_for_index != nullptr;
  if (is_native) return std::make_shared<WgpuNative>(native);
  return std::make_shared<Dawn>();
}

}  // namespace tensorgrad::webgpu

namespace tensorgrad::inline TENSORGRAD_ABI {

void pause_for(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI
