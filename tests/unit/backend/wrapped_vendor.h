// SPDX-License-Identifier: MIT
// Forwards to the real WebGPU library, except for functions that a test overrides.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/webgpu/device.h"
#include "backend/webgpu/vendor.h"

namespace tensorgrad::testing {

using webgpu::Api;

class WrappedVendor : public webgpu::Vendor {
 public:
  explicit WrappedVendor(std::shared_ptr<Vendor> real) : real_(std::move(real)) {}

  [[nodiscard]] std::string name() const override { return real_->name(); }
  WGPUInstance create_instance(const Api& api) const override {
    return real_->create_instance(api);
  }
  std::vector<WGPUAdapter> adapters(const Api& api) const override { return real_->adapters(api); }
  WGPUChainedStruct* device_chain(bool checked) const override {
    return real_->device_chain(checked);
  }
  WGPUShaderModule create_module(const Api& api, WGPUDevice device,
                                 const WGPUShaderModuleDescriptor& descriptor,
                                 bool checked) const override {
    return real_->create_module(api, device, descriptor, checked);
  }
  [[nodiscard]] WGPUFeatureName feature_number(const Api& api,
                                               WGPUFeatureName feature) const override {
    return real_->feature_number(api, feature);
  }
  [[nodiscard]] std::vector<WGPUFeatureName> matrix_features() const override {
    return real_->matrix_features();
  }
  [[nodiscard]] bool concurrent() const override { return real_->concurrent(); }
  std::uint64_t submit(const Api& api, WGPUQueue queue,
                       std::span<const WGPUCommandBuffer> commands) const override {
    return real_->submit(api, queue, commands);
  }
  void poll(const Api& api, WGPUDevice device) const override { real_->poll(api, device); }
  void wait(const Api& api, WGPUDevice device, std::uint64_t mark) const override {
    real_->wait(api, device, mark);
  }
  double timestamp_period(WGPUQueue queue) const override { return real_->timestamp_period(queue); }

 private:
  std::shared_ptr<Vendor> real_;
};

// Returns a copy of the functions. Keeps their instance, so that no other device gets it.
inline Api real_api() {
  std::string reason;
  static const std::shared_ptr<const Api> api = webgpu::load_api("", reason);
  return *api;
}

// Returns a device that calls `api`, to which it keeps a reference, or null if there is no adapter.
inline std::shared_ptr<webgpu::WebGpuDevice> device_through(const Api& api) {
  WebGpuOptions options;
  options.allow_software = true;
  std::vector<webgpu::Adapter> adapters = webgpu::find_adapters(api, options);
  webgpu::Adapter* const adapter = webgpu::choose_adapter(adapters, -1);
  if (adapter == nullptr) return nullptr;
  const std::shared_ptr<const Api> unowned(std::shared_ptr<void>(), &api);
  return std::make_shared<webgpu::WebGpuDevice>(unowned, std::move(*adapter), options);
}

}  // namespace tensorgrad::testing
