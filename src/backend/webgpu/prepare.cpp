// SPDX-License-Identifier: MIT
// Programs made ready: kernels compiled once per text, bind groups made once per launch.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "backend/webgpu/device.h"
#include "backend/webgpu/vendor.h"
#include "base/check.h"

namespace tensorgrad::webgpu {
namespace {

constexpr std::size_t kCompileThreads = 8;
constexpr std::int64_t kLeastBinding = 16;  // vec4<f32>

Site site_of(const Launch& launch) { return launch.sites.empty() ? Site() : launch.sites.front(); }

// 'r' or 'w' per binding: what the layout depends on.
std::string modes_of(const Launch& launch) {
  std::string modes;
  for (const Binding& binding : launch.bindings) {
    modes += binding.mode == BindMode::kRead ? 'r' : 'w';
  }
  return modes;
}

}  // namespace

WGPUBindGroupLayout WebGpuDevice::layout(const std::string& modes) {
  Handle<WGPUBindGroupLayout>& known = layouts_[modes];
  if (known) return known.get();
  std::vector<WGPUBindGroupLayoutEntry> entries(modes.size());
  for (std::size_t i = 0; i < modes.size(); ++i) {
    WGPUBindGroupLayoutEntry& entry = entries[i];
    entry = {};
    entry.binding = static_cast<std::uint32_t>(i);
    entry.visibility = WGPUShaderStage_Compute;
    // What every shader's array may have for an element: the driver then has nothing to check per
    // dispatch.
    entry.buffer.minBindingSize = kLeastBinding;
    entry.buffer.type =
        modes[i] == 'r' ? WGPUBufferBindingType_ReadOnlyStorage : WGPUBufferBindingType_Storage;
    if (modes[i] == 'h') {
      entry.buffer.type = WGPUBufferBindingType_Uniform;
      entry.buffer.hasDynamicOffset = WGPU_TRUE;
      entry.buffer.minBindingSize = kHyperRowBytes;
    }
  }
  WGPUBindGroupLayoutDescriptor descriptor = {};
  descriptor.label = view(modes);
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  begin_scope();
  Handle<WGPUBindGroupLayout> made(api_,
                                   api_.DeviceCreateBindGroupLayout(device_.get(), &descriptor));
  const std::string error = end_scope();
  if (!error.empty()) throw DeviceError("webgpu: no bind group layout \"" + modes + "\": " + error);
  known = std::move(made);
  return known.get();
}

WGPUPipelineLayout WebGpuDevice::pipeline_layout(const std::string& modes, bool uses_hyper) {
  Handle<WGPUPipelineLayout>& known = pipeline_layouts_[modes + (uses_hyper ? "+h" : "")];
  if (known) return known.get();
  const std::array<WGPUBindGroupLayout, 2> groups = {layout(modes), layout("h")};
  WGPUPipelineLayoutDescriptor descriptor = {};
  descriptor.bindGroupLayoutCount = uses_hyper ? 2 : 1;
  descriptor.bindGroupLayouts = groups.data();
  known = Handle(api_, api_.DeviceCreatePipelineLayout(device_.get(), &descriptor));
  return known.get();
}

std::shared_ptr<Pipeline> WebGpuDevice::with_layouts(const Launch& launch,
                                                     const WgslKernel& kernel) {
  const std::string modes = modes_of(launch);
  auto made = std::make_shared<Pipeline>();
  made->layout = layout(modes);
  made->whole = pipeline_layout(modes, kernel.uses_hyper);
  return made;
}

Handle<WGPUShaderModule> WebGpuDevice::make_module(const Launch& launch, const std::string& text) {
  WGPUShaderSourceWGSL source = {};
  source.chain.sType = WGPUSType_ShaderSourceWGSL;
  source.code = view(text);
  WGPUShaderModuleDescriptor descriptor = {};
  descriptor.nextInChain = &source.chain;
  descriptor.label = view(launch.name);
  return {api_, api_.vendor->create_module(api_, device_.get(), descriptor, checked_)};
}

void WebGpuDevice::make_pipeline(const Launch& launch, WGPUShaderModule module,
                                 Pipeline& pipeline) {
  WGPUComputePipelineDescriptor descriptor = {};
  descriptor.label = view(launch.name);
  descriptor.layout = pipeline.whole;
  descriptor.compute.module = module;
  descriptor.compute.entryPoint = view("main");
  pipeline.handle = Handle(api_, api_.DeviceCreateComputePipeline(device_.get(), &descriptor));
}

std::shared_ptr<Pipeline> WebGpuDevice::compile(const Launch& launch, const WgslKernel& kernel) {
  std::string text = kernel.text();
  if (!replacement_.empty()) text = std::exchange(replacement_, {});
  std::shared_ptr<Pipeline> made = with_layouts(launch, kernel);
  begin_scope();
  const Handle<WGPUShaderModule> module = make_module(launch, text);
  std::string error = end_scope();
  if (error.empty()) {
    begin_scope();
    make_pipeline(launch, module.get(), *made);
    error = end_scope();
  }
  if (!error.empty()) {
    throw_faults();
    throw DeviceError("webgpu: kernel " + launch.name + " was refused: " + error, site_of(launch));
  }
  return made;
}

// Compiles what is not known yet on several threads, and gives it, to be kept until it is in use.
// Scopes belong to the device, not to a thread, so an error here is nobody's: then all is left as
// it was, and compile() will meet the error again by itself.
std::vector<std::shared_ptr<Pipeline>> WebGpuDevice::compile_together(
    const Program& program, const std::vector<WgslKernel>& kernels) {
  std::map<std::string_view, std::size_t> fresh;  // by body: the first launch with it
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto known = pipelines_.find(kernels[i].body);
    if (known == pipelines_.end() || known->second.expired()) fresh.emplace(kernels[i].body, i);
  }
  if (fresh.size() < 2 || !api_.vendor->concurrent() || !replacement_.empty()) return {};
  std::vector<std::pair<std::size_t, std::shared_ptr<Pipeline>>> work;
  for (const auto& [body, launch] : fresh) {
    work.emplace_back(launch, with_layouts(program.launches[launch], kernels[launch]));
  }
  std::atomic<std::size_t> next{0};
  const auto compile_some = [&] {
    for (std::size_t i = next++; i < work.size(); i = next++) {
      const Launch& launch = program.launches[work[i].first];
      const Handle<WGPUShaderModule> module = make_module(launch, kernels[work[i].first].text());
      make_pipeline(launch, module.get(), *work[i].second);
    }
  };
  begin_scope();
  {
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min({work.size(), cores, kCompileThreads}); ++i) {
      helpers.emplace_back(compile_some);
    }
    compile_some();
  }
  if (!end_scope().empty()) return {};
  std::vector<std::shared_ptr<Pipeline>> kept;
  for (auto& [launch, made] : work) {
    pipelines_[kernels[launch].body] = made;
    kept.push_back(std::move(made));
  }
  return kept;
}

std::shared_ptr<Pipeline> WebGpuDevice::pipeline(const Launch& launch, const WgslKernel& kernel) {
  std::weak_ptr<Pipeline>& known = pipelines_[kernel.body];
  std::shared_ptr<Pipeline> found = known.lock();
  if (found == nullptr || !replacement_.empty()) {
    found = compile(launch, kernel);
    known = found;
  }
  return found;
}

Handle<WGPUBindGroup> WebGpuDevice::bind(const Launch& launch, WGPUBindGroupLayout group_layout,
                                         std::span<const BufferHandle> buffers) {
  std::vector<WGPUBindGroupEntry> entries(launch.bindings.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Binding& binding = launch.bindings[i];
    const Buffer& bound = buffer(buffers[static_cast<std::size_t>(binding.buffer)]);
    CHECK(binding.offset + binding.bytes <= bound.bytes, launch.name + ": " + bound.label);
    entries[i] = {};
    entries[i].binding = static_cast<std::uint32_t>(i);
    entries[i].buffer = bound.handle.get();
    entries[i].offset = static_cast<std::uint64_t>(binding.offset);
    // Buffers are of 256 bytes or a multiple of it, and bindings begin at one.
    entries[i].size =
        static_cast<std::uint64_t>(std::max(kLeastBinding, (binding.bytes + 3) / 4 * 4));
  }
  WGPUBindGroupDescriptor descriptor = {};
  descriptor.label = view(launch.name);
  descriptor.layout = group_layout;
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  begin_scope();
  Handle<WGPUBindGroup> group(api_, api_.DeviceCreateBindGroup(device_.get(), &descriptor));
  const std::string error = end_scope();
  if (!error.empty()) {
    throw DeviceError("webgpu: the buffers of kernel " + launch.name + " were refused: " + error,
                      site_of(launch));
  }
  return group;
}

void WebGpuDevice::check_launch(const Launch& launch, const WgslKernel& kernel) const {
  const auto refuse = [&](const std::string& what) {
    throw DeviceError("webgpu: kernel " + launch.name + " " + what, site_of(launch));
  };
  const int most = info_.limits.max_storage_bindings;
  if (static_cast<int>(launch.bindings.size()) > most) {
    refuse("binds " + std::to_string(launch.bindings.size()) + " buffers; " + info_.name +
           " allows " + std::to_string(most));
  }
  for (const Binding& binding : launch.bindings) {
    if (binding.bytes <= info_.limits.max_binding_bytes) continue;
    refuse("binds " + std::to_string(binding.bytes) + " bytes at once; " + info_.name + " allows " +
           std::to_string(info_.limits.max_binding_bytes));
  }
  for (std::size_t i = 0; i < launch.bindings.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (launch.bindings[i].buffer == launch.bindings[j].buffer) refuse("binds one buffer twice");
    }
  }
  if (kernel.workgroup_bytes > info_.limits.max_workgroup_bytes) {
    refuse("needs " + std::to_string(kernel.workgroup_bytes) + " bytes of workgroup memory");
  }
}

WgslOptions WebGpuDevice::kernel_options() const {
  WgslOptions options = forced_;
  options.max_threads = info_.limits.max_workgroup_invocations;
  options.max_workgroup_bytes = info_.limits.max_workgroup_bytes;
  return options;
}

std::unique_ptr<Executable> WebGpuDevice::prepare(const Program& program,
                                                  std::span<const BufferHandle> buffers) {
  const std::lock_guard lock(mutex_);
  throw_faults();
  CHECK(buffers.size() == program.buffers.size());
  const WgslOptions options = kernel_options();
  std::vector<WgslKernel> kernels;
  for (const Launch& launch : program.launches) {
    kernels.push_back(write_wgsl(launch, options));
    check_launch(launch, kernels.back());
  }
  const auto kept = compile_together(program, kernels);
  auto executable = std::make_unique<WebGpuExecutable>(mutex_);
  executable->program = &program;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Launch& launch = program.launches[i];
    Step step;
    step.launch = &launch;
    step.pipeline = pipeline(launch, kernels[i]);
    step.group = bind(launch, step.pipeline->layout, buffers);
    step.groups_x = kernels[i].groups_x;
    step.groups_y = kernels[i].groups_y;
    step.uses_hyper = kernels[i].uses_hyper;
    executable->uses_hyper |= step.uses_hyper;
    executable->steps.push_back(std::move(step));
  }
  std::erase_if(pipelines_, [](const auto& entry) { return entry.second.expired(); });
  return executable;
}

void WebGpuDevice::rebind(Executable& any, std::span<const BufferHandle> buffers, int changed) {
  const std::lock_guard lock(mutex_);
  throw_faults();
  WebGpuExecutable& executable = own(any);
  std::vector<std::pair<Step*, Handle<WGPUBindGroup>>> made;
  for (Step& step : executable.steps) {
    const auto& bindings = step.launch->bindings;
    if (std::none_of(bindings.begin(), bindings.end(),
                     [&](const Binding& each) { return each.buffer == changed; }))
      continue;
    made.emplace_back(&step, bind(*step.launch, step.pipeline->layout, buffers));
  }
  for (auto& [step, group] : made) step->group = std::move(group);
  executable.validated = false;
}

}  // namespace tensorgrad::webgpu
