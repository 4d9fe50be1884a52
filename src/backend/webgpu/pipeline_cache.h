// SPDX-License-Identifier: MIT
// Kernels to pipelines: compiling WGSL, several at a time, and the errors of that.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/webgpu/executable.h"
#include "backend/webgpu/submit_queue.h"

namespace tensorgrad::webgpu {

// The cache holds each body of a kernel at most once, and only while a BoundDispatch or a caller
// uses its pipeline. A kernel that was rejected is not in the cache.
//
// Lock: callers hold the mutex of the WebGpuDevice, because error scopes belong to the device. The
// threads that compile together use only the const functions.
class PipelineCache {
 public:
  // `checked` keeps the driver's bounds checks.
  PipelineCache(SubmitQueue& queue, bool checked) : queue_(queue), checked_(checked) {}

  // For tests: compiles `wgsl` in place of the next kernel.
  void replace_next(std::string wgsl) { replacement_ = std::move(wgsl); }
  [[nodiscard]] bool replaces_next() const { return !replacement_.empty(); }

  // Throws DeviceError if the kernel exceeds a limit of the device.
  void check(const Kernel& kernel) const;
  // Compiles the kernels that are not cached, several at a time. Returns them; the caller keeps
  // them until they are in use.
  std::vector<std::shared_ptr<Pipeline>> compile_together(const std::vector<Kernel>& kernels);
  // Compiles `text` for the kernel's bindings, without the cache. Returns null and sets `error` if
  // it is rejected.
  std::shared_ptr<Pipeline> compile(const Kernel& kernel, const std::string& text,
                                    std::string& error);
  // Compiles the kernel if it is not cached. Throws DeviceError with the kernel's location if it is
  // rejected. The dispatch has no bind group yet.
  BoundDispatch make_dispatch(Kernel kernel);
  // Returns a bind group for each dispatch. Their bindings number `buffers`, of which those that
  // none binds may be null. Throws DeviceError with the kernel's location if one is rejected.
  std::vector<Handle<WGPUBindGroup>> bind(std::span<const BoundDispatch* const> dispatches,
                                          std::span<const Buffer* const> buffers);
  // Forgets the pipelines that nothing uses.
  void drop_unused();

 private:
  using Work = std::vector<std::pair<const Kernel*, std::shared_ptr<Pipeline>>>;

  WGPUBindGroupLayout layout(const std::string& modes);
  WGPUPipelineLayout pipeline_layout(const std::string& modes, bool uses_scalars);
  std::shared_ptr<Pipeline> with_layouts(const Kernel& kernel);
  [[nodiscard]] Handle<WGPUShaderModule> make_module(const Kernel& kernel,
                                                     const std::string& text) const;
  void make_pipeline(const Kernel& kernel, WGPUShaderModule module, Pipeline& pipeline) const;
  void make_by_threads(const Work& work) const;
  void make_in_background(const Work& work) const;
  std::shared_ptr<Pipeline> find_or_compile(const Kernel& kernel);
  [[nodiscard]] Handle<WGPUBindGroup> make_group(const BoundDispatch& dispatch,
                                                 std::span<const Buffer* const> buffers) const;

  SubmitQueue& queue_;
  const Api& api_ = queue_.api();
  const bool checked_;
  std::string replacement_;
  std::map<std::string, Handle<WGPUBindGroupLayout>> layouts_;  // key: "r" or "w" per binding
  std::map<std::string, Handle<WGPUPipelineLayout>> pipeline_layouts_;
  std::unordered_map<std::string, std::weak_ptr<Pipeline>> pipelines_;  // by body
};

}  // namespace tensorgrad::webgpu
