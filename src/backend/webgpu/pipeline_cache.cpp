// SPDX-License-Identifier: MIT
#include "backend/webgpu/pipeline_cache.h"

#include <algorithm>
#include <array>

#include "backend/webgpu/vendor.h"
#include "base/check.h"
#include "base/parallel.h"

namespace tensorgrad::webgpu {
namespace {

constexpr std::size_t kCompileThreads = 8;

WGPUComputePipelineDescriptor describe(const Kernel& kernel, WGPUShaderModule module,
                                       const Pipeline& pipeline) {
  WGPUComputePipelineDescriptor descriptor = {};
  descriptor.label = view(kernel.name);
  descriptor.layout = pipeline.whole;
  descriptor.compute.module = module;
  descriptor.compute.entryPoint = view("main");
  return descriptor;
}

}  // namespace

WGPUBindGroupLayout PipelineCache::layout(const std::string& modes) {
  Handle<WGPUBindGroupLayout>& known = layouts_[modes];
  if (!known) known = queue_.create_layout(modes);
  return known.get();
}

WGPUPipelineLayout PipelineCache::pipeline_layout(const std::string& modes, bool uses_scalars) {
  Handle<WGPUPipelineLayout>& known = pipeline_layouts_[modes + (uses_scalars ? "+h" : "")];
  if (known) return known.get();
  const std::array<WGPUBindGroupLayout, 2> groups = {layout(modes), queue_.row_layout()};
  WGPUPipelineLayoutDescriptor descriptor = {};
  descriptor.bindGroupLayoutCount = uses_scalars ? 2 : 1;
  descriptor.bindGroupLayouts = groups.data();
  known = Handle(api_, api_.DeviceCreatePipelineLayout(queue_.device(), &descriptor));
  return known.get();
}

std::shared_ptr<Pipeline> PipelineCache::with_layouts(const Kernel& kernel) {
  const std::string modes = kernel.dispatch.binding_modes();
  auto made = std::make_shared<Pipeline>();
  made->layout = layout(modes);
  made->whole = pipeline_layout(modes, kernel.dispatch.kernel.uses_scalars);
  return made;
}

Handle<WGPUShaderModule> PipelineCache::make_module(const Kernel& kernel,
                                                    const std::string& text) const {
  WGPUShaderSourceWGSL source = {};
  source.chain.sType = WGPUSType_ShaderSourceWGSL;
  source.code = view(text);
  WGPUShaderModuleDescriptor descriptor = {};
  descriptor.nextInChain = &source.chain;
  descriptor.label = view(kernel.name);
  return {api_, api_.vendor->create_module(api_, queue_.device(), descriptor, checked_)};
}

void PipelineCache::make_pipeline(const Kernel& kernel, WGPUShaderModule module,
                                  Pipeline& pipeline) const {
  const WGPUComputePipelineDescriptor descriptor = describe(kernel, module, pipeline);
  pipeline.handle = Handle(api_, api_.DeviceCreateComputePipeline(queue_.device(), &descriptor));
}

void PipelineCache::make_by_threads(const Work& work) const {
  in_parallel(work.size(), kCompileThreads, [&](std::size_t i) {
    const Kernel& kernel = *work[i].first;
    const Handle<WGPUShaderModule> module = make_module(kernel, kernel.dispatch.kernel.text());
    make_pipeline(kernel, module.get(), *work[i].second);
  });
}

// Lets the library compile on its own threads.
void PipelineCache::make_in_background(const Work& work) const {
  struct Waiting {
    const Api& api;
    std::size_t left;
  } waiting{api_, work.size()};
  for (const auto& [kernel, made] : work) {
    const Handle<WGPUShaderModule> module = make_module(*kernel, kernel->dispatch.kernel.text());
    const WGPUComputePipelineDescriptor descriptor = describe(*kernel, module.get(), *made);
    WGPUCreateComputePipelineAsyncCallbackInfo info = {};
    info.mode = WGPUCallbackMode_AllowProcessEvents;
    info.callback = [](WGPUCreatePipelineAsyncStatus, WGPUComputePipeline pipeline, WGPUStringView,
                       void* to, void* of) {
      auto& still = *static_cast<Waiting*>(of);
      static_cast<Pipeline*>(to)->handle = Handle(still.api, pipeline);
      --still.left;
    };
    info.userdata1 = made.get();
    info.userdata2 = &waiting;
    api_.DeviceCreateComputePipelineAsync(queue_.device(), &descriptor, info);
  }
  while (waiting.left > 0) api_.vendor->wait_for_event(api_, queue_.device());
}

std::shared_ptr<Pipeline> PipelineCache::compile(const Kernel& kernel, const std::string& text,
                                                 std::string& error) {
  std::shared_ptr<Pipeline> made = with_layouts(kernel);
  queue_.begin_scope();
  const Handle<WGPUShaderModule> module = make_module(kernel, text);
  error = queue_.end_scope();
  if (!error.empty()) return nullptr;
  queue_.begin_scope();
  make_pipeline(kernel, module.get(), *made);
  error = queue_.end_scope();
  return error.empty() ? made : nullptr;
}

// Error scopes belong to the device, not to a thread, so an error cannot be attributed to a kernel.
// In that case nothing is cached, and make_dispatch() reproduces the error.
std::vector<std::shared_ptr<Pipeline>> PipelineCache::compile_together(
    const std::vector<Kernel>& kernels) {
  std::map<std::string_view, const Kernel*> fresh;  // by body: the first with it
  for (const Kernel& kernel : kernels) {
    const std::string& body = kernel.dispatch.kernel.body;
    const auto known = pipelines_.find(body);
    if (known == pipelines_.end() || known->second.expired()) fresh.emplace(body, &kernel);
  }
  if (fresh.size() < 2 || !replacement_.empty()) return {};
  Work work;
  for (const auto& [body, kernel] : fresh) work.emplace_back(kernel, with_layouts(*kernel));
  queue_.begin_scope();
  api_.vendor->concurrent() ? make_by_threads(work) : make_in_background(work);
  const bool all = std::all_of(work.begin(), work.end(),
                               [](const auto& each) { return bool{each.second->handle}; });
  if (!queue_.end_scope().empty() || !all) return {};
  std::vector<std::shared_ptr<Pipeline>> kept;
  for (auto& [kernel, made] : work) {
    pipelines_[kernel->dispatch.kernel.body] = made;
    kept.push_back(std::move(made));
  }
  return kept;
}

std::shared_ptr<Pipeline> PipelineCache::find_or_compile(const Kernel& kernel) {
  std::weak_ptr<Pipeline>& known = pipelines_[kernel.dispatch.kernel.body];
  std::shared_ptr<Pipeline> found = known.lock();
  if (found != nullptr && replacement_.empty()) return found;
  std::string error;
  found = compile(
      kernel,
      replacement_.empty() ? kernel.dispatch.kernel.text() : std::exchange(replacement_, {}),
      error);
  if (found == nullptr) {
    queue_.throw_faults();
    throw DeviceError("webgpu: kernel " + kernel.name + " was rejected: " + error, kernel.location);
  }
  known = found;
  return found;
}

Handle<WGPUBindGroup> PipelineCache::make_group(const BoundDispatch& dispatch,
                                                std::span<const Buffer* const> buffers) const {
  std::vector<WGPUBindGroupEntry> entries(dispatch.bindings.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Binding& binding = dispatch.bindings[i];
    const Buffer* const bound = buffers[static_cast<std::size_t>(binding.buffer)];
    CHECK(bound != nullptr, dispatch.name + ": no buffer " + std::to_string(binding.buffer));
    CHECK(binding.offset + binding.bytes <= bound->bytes, dispatch.name + ": " + bound->label);
    entries[i] = {};
    entries[i].binding = static_cast<std::uint32_t>(i);
    entries[i].buffer = bound->handle.get();
    entries[i].offset = static_cast<std::uint64_t>(binding.offset);
    // In bounds: buffer sizes are multiples of 256 bytes, and bindings begin at such multiples.
    entries[i].size =
        static_cast<std::uint64_t>(std::max(kMinBinding, (binding.bytes + 3) / 4 * 4));
  }
  WGPUBindGroupDescriptor descriptor = {};
  descriptor.label = view(dispatch.name);
  descriptor.layout = dispatch.pipeline->layout;
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  return {api_, api_.DeviceCreateBindGroup(queue_.device(), &descriptor)};
}

std::vector<Handle<WGPUBindGroup>> PipelineCache::bind(
    std::span<const BoundDispatch* const> dispatches, std::span<const Buffer* const> buffers) {
  if (dispatches.empty()) return {};
  // The answer of an error scope takes a round trip, in a page one of its event loop.
  queue_.begin_scope();
  std::vector<Handle<WGPUBindGroup>> groups;
  for (const BoundDispatch* dispatch : dispatches) groups.push_back(make_group(*dispatch, buffers));
  const std::string error = queue_.end_scope();
  if (error.empty()) return groups;
  if (dispatches.size() > 1) {  // finds the one that is rejected
    for (const BoundDispatch* dispatch : dispatches) bind({&dispatch, 1}, buffers);
  }
  throw DeviceError(
      "webgpu: the buffers of kernel " + dispatches[0]->name + " were rejected: " + error,
      dispatches[0]->location);
}

void PipelineCache::check(const Kernel& kernel) const {
  const auto refuse = [&](const std::string& what) {
    throw DeviceError("webgpu: kernel " + kernel.name + " " + what, kernel.location);
  };
  const std::vector<Binding>& bindings = kernel.dispatch.bindings;
  const int most = queue_.limits().max_storage_bindings;
  if (static_cast<int>(bindings.size()) > most) {
    refuse("binds " + std::to_string(bindings.size()) + " buffers; " + queue_.name() + " allows " +
           std::to_string(most));
  }
  for (const Binding& binding : bindings) {
    if (binding.bytes <= queue_.limits().max_binding_bytes) continue;
    refuse("binds " + std::to_string(binding.bytes) + " bytes at once; " + queue_.name() +
           " allows " + std::to_string(queue_.limits().max_binding_bytes));
  }
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool read = bindings[i].mode == BindMode::kRead && bindings[j].mode == BindMode::kRead;
      if (bindings[i].buffer == bindings[j].buffer && !read) refuse("binds one buffer twice");
    }
  }
  if (kernel.dispatch.kernel.workgroup_bytes > queue_.limits().max_workgroup_bytes) {
    refuse("needs " + std::to_string(kernel.dispatch.kernel.workgroup_bytes) +
           " bytes of workgroup memory");
  }
}

BoundDispatch PipelineCache::make_dispatch(Kernel kernel) {
  BoundDispatch dispatch;
  dispatch.pipeline = find_or_compile(kernel);
  dispatch.name = std::move(kernel.name);
  dispatch.location = kernel.location;
  dispatch.launches = kernel.dispatch.count;
  dispatch.bindings = std::move(kernel.dispatch.bindings);
  dispatch.groups_x = kernel.dispatch.kernel.groups_x;
  dispatch.groups_y = kernel.dispatch.kernel.groups_y;
  dispatch.uses_scalars = kernel.dispatch.kernel.uses_scalars;
  return dispatch;
}

void PipelineCache::drop_unused() {
  std::erase_if(pipelines_, [](const auto& entry) { return entry.second.expired(); });
}

}  // namespace tensorgrad::webgpu
