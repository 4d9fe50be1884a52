// SPDX-License-Identifier: MIT
// wgpu-native and Dawn, behind one face. The only file that knows either's extensions.
#include "backend/webgpu/vendor.h"

#include <webgpu/wgpu.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

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

  std::uint64_t submit(const Api&, WGPUQueue queue, WGPUCommandBuffer commands) const override {
    return functions_.submit_for_index(queue, 1, &commands);
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

// Dawn's own header is not needed for these: one chained struct and its number.
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

class Dawn : public Vendor {
 public:
  Dawn() {
    toggles_.chain.sType = kDawnTogglesDescriptor;
    toggles_.enabled = kTrusted.data();
    toggles_.enabled_count = kTrusted.size();
  }

  [[nodiscard]] std::string name() const override { return "Dawn"; }

  WGPUInstance create_instance(const Api& api) const override {
    const WGPUInstanceDescriptor descriptor = {};
    return api.CreateInstance(&descriptor);
  }

  // There is no list to be had: one adapter per backend, then the fallback adapter.
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

  [[nodiscard]] bool concurrent() const override { return false; }

  std::uint64_t submit(const Api& api, WGPUQueue queue, WGPUCommandBuffer commands) const override {
    api.QueueSubmit(queue, 1, &commands);
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

  static WGPUAdapter request(const Api& api, WGPUBackendType backend) {
    WGPURequestAdapterOptions options = {};
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

  mutable DawnToggles toggles_ = {};
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
