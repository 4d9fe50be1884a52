// SPDX-License-Identifier: MIT
// Prepares programs: compiles one kernel per distinct text and creates one bind group per launch.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "backend/webgpu/device.h"
#include "backend/webgpu/vendor.h"
#include "base/check.h"
#include "base/parallel.h"

namespace tensorgrad::webgpu {
namespace {

constexpr std::size_t kCompileThreads = 8;
constexpr std::int64_t kMinBinding = 16;  // vec4<f32>

Kernel kernel_of(const Program& program, Dispatch dispatch) {
  const Launch& first = program.launches[dispatch.first];
  Kernel kernel{
      first.name, first.locations.empty() ? SourceLocation() : first.locations.front(), {}};
  if (dispatch.count > 1) kernel.name += "_and_" + std::to_string(dispatch.count - 1);
  kernel.dispatch = std::move(dispatch);
  return kernel;
}

WGPUComputePipelineDescriptor describe(const Kernel& kernel, WGPUShaderModule module,
                                       const Pipeline& pipeline) {
  WGPUComputePipelineDescriptor descriptor = {};
  descriptor.label = view(kernel.name);
  descriptor.layout = pipeline.whole;
  descriptor.compute.module = module;
  descriptor.compute.entryPoint = view("main");
  return descriptor;
}

// Returns 'r' or 'w' per binding, which determines the layout.
std::string modes_of(const Dispatch& dispatch) {
  std::string modes;
  for (const Binding& binding : dispatch.bindings) {
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
    // At least the element size of any shader's array, so the driver need not check it at each
    // dispatch.
    entry.buffer.minBindingSize = kMinBinding;
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
  if (!error.empty())
    throw DeviceError("webgpu: cannot create the bind group layout \"" + modes + "\": " + error);
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

std::shared_ptr<Pipeline> WebGpuDevice::with_layouts(const Kernel& kernel) {
  const std::string modes = modes_of(kernel.dispatch);
  auto made = std::make_shared<Pipeline>();
  made->layout = layout(modes);
  made->whole = pipeline_layout(modes, kernel.dispatch.kernel.uses_hyper);
  return made;
}

Handle<WGPUShaderModule> WebGpuDevice::make_module(const Kernel& kernel, const std::string& text) {
  WGPUShaderSourceWGSL source = {};
  source.chain.sType = WGPUSType_ShaderSourceWGSL;
  source.code = view(text);
  WGPUShaderModuleDescriptor descriptor = {};
  descriptor.nextInChain = &source.chain;
  descriptor.label = view(kernel.name);
  return {api_, api_.vendor->create_module(api_, device_.get(), descriptor, checked_)};
}

void WebGpuDevice::make_pipeline(const Kernel& kernel, WGPUShaderModule module,
                                 Pipeline& pipeline) {
  const WGPUComputePipelineDescriptor descriptor = describe(kernel, module, pipeline);
  pipeline.handle = Handle(api_, api_.DeviceCreateComputePipeline(device_.get(), &descriptor));
}

void WebGpuDevice::make_by_threads(const Work& work) {
  in_parallel(work.size(), kCompileThreads, [&](std::size_t i) {
    const Kernel& kernel = *work[i].first;
    const Handle<WGPUShaderModule> module = make_module(kernel, kernel.dispatch.kernel.text());
    make_pipeline(kernel, module.get(), *work[i].second);
  });
}

// Lets the library compile on its own threads.
void WebGpuDevice::make_in_background(const Work& work) {
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
    api_.DeviceCreateComputePipelineAsync(device_.get(), &descriptor, info);
  }
  while (waiting.left > 0) api_.vendor->wait_for_event(api_, device_.get());
}

std::shared_ptr<Pipeline> WebGpuDevice::compile(const Kernel& kernel) {
  std::string text = kernel.dispatch.kernel.text();
  if (!replacement_.empty()) text = std::exchange(replacement_, {});
  std::shared_ptr<Pipeline> made = with_layouts(kernel);
  begin_scope();
  const Handle<WGPUShaderModule> module = make_module(kernel, text);
  std::string error = end_scope();
  if (error.empty()) {
    begin_scope();
    make_pipeline(kernel, module.get(), *made);
    error = end_scope();
  }
  if (!error.empty()) {
    throw_faults();
    throw DeviceError("webgpu: kernel " + kernel.name + " was rejected: " + error, kernel.location);
  }
  return made;
}

// Compiles the kernels that are not cached, several at a time. Returns them; the caller keeps them
// until they are in use. Error scopes belong to the device, not to a thread, so an error cannot be
// attributed to a kernel. In that case nothing is cached, and compile() reproduces the error.
std::vector<std::shared_ptr<Pipeline>> WebGpuDevice::compile_together(
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
  begin_scope();
  api_.vendor->concurrent() ? make_by_threads(work) : make_in_background(work);
  const bool all = std::all_of(work.begin(), work.end(),
                               [](const auto& each) { return bool{each.second->handle}; });
  if (!end_scope().empty() || !all) return {};
  std::vector<std::shared_ptr<Pipeline>> kept;
  for (auto& [kernel, made] : work) {
    pipelines_[kernel->dispatch.kernel.body] = made;
    kept.push_back(std::move(made));
  }
  return kept;
}

std::shared_ptr<Pipeline> WebGpuDevice::pipeline(const Kernel& kernel) {
  std::weak_ptr<Pipeline>& known = pipelines_[kernel.dispatch.kernel.body];
  std::shared_ptr<Pipeline> found = known.lock();
  if (found == nullptr || !replacement_.empty()) {
    found = compile(kernel);
    known = found;
  }
  return found;
}

Handle<WGPUBindGroup> WebGpuDevice::bind(const Step& step, std::span<const BufferHandle> buffers) {
  std::vector<WGPUBindGroupEntry> entries(step.bindings.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Binding& binding = step.bindings[i];
    const Buffer& bound = buffer(buffers[static_cast<std::size_t>(binding.buffer)]);
    CHECK(binding.offset + binding.bytes <= bound.bytes, step.name + ": " + bound.label);
    entries[i] = {};
    entries[i].binding = static_cast<std::uint32_t>(i);
    entries[i].buffer = bound.handle.get();
    entries[i].offset = static_cast<std::uint64_t>(binding.offset);
    // In bounds: buffer sizes are multiples of 256 bytes, and bindings begin at such multiples.
    entries[i].size =
        static_cast<std::uint64_t>(std::max(kMinBinding, (binding.bytes + 3) / 4 * 4));
  }
  WGPUBindGroupDescriptor descriptor = {};
  descriptor.label = view(step.name);
  descriptor.layout = step.pipeline->layout;
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  begin_scope();
  Handle<WGPUBindGroup> group(api_, api_.DeviceCreateBindGroup(device_.get(), &descriptor));
  const std::string error = end_scope();
  if (!error.empty()) {
    throw DeviceError("webgpu: the buffers of kernel " + step.name + " were rejected: " + error,
                      step.location);
  }
  return group;
}

void WebGpuDevice::check_kernel(const Kernel& kernel) const {
  const auto refuse = [&](const std::string& what) {
    throw DeviceError("webgpu: kernel " + kernel.name + " " + what, kernel.location);
  };
  const std::vector<Binding>& bindings = kernel.dispatch.bindings;
  const int most = info_.limits.max_storage_bindings;
  if (static_cast<int>(bindings.size()) > most) {
    refuse("binds " + std::to_string(bindings.size()) + " buffers; " + info_.name + " allows " +
           std::to_string(most));
  }
  for (const Binding& binding : bindings) {
    if (binding.bytes <= info_.limits.max_binding_bytes) continue;
    refuse("binds " + std::to_string(binding.bytes) + " bytes at once; " + info_.name + " allows " +
           std::to_string(info_.limits.max_binding_bytes));
  }
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool read = bindings[i].mode == BindMode::kRead && bindings[j].mode == BindMode::kRead;
      if (bindings[i].buffer == bindings[j].buffer && !read) refuse("binds one buffer twice");
    }
  }
  if (kernel.dispatch.kernel.workgroup_bytes > info_.limits.max_workgroup_bytes) {
    refuse("needs " + std::to_string(kernel.dispatch.kernel.workgroup_bytes) +
           " bytes of workgroup memory");
  }
}

WgslOptions WebGpuDevice::kernel_options() const {
  WgslOptions options = forced_;
  options.max_threads = info_.limits.max_workgroup_invocations;
  options.max_workgroup_bytes = info_.limits.max_workgroup_bytes;
  options.units = units_;
  const bool forced = forced_.tile != 0 || forced_.lanes != 0 ||
                      forced_.subgroup_matrix_tile != 0 || forced_.subgroups.size != 0;
  options.barrier_free |= info_.slow_barriers && !forced;
  if (options.subgroups.size == 0) options.subgroups = subgroups_.value_or(Subgroups{});
  return options;
}

Step WebGpuDevice::make_step(Kernel kernel, std::span<const BufferHandle> buffers) {
  Step step;
  step.pipeline = pipeline(kernel);
  step.name = std::move(kernel.name);
  step.location = kernel.location;
  step.launches = kernel.dispatch.count;
  step.bindings = std::move(kernel.dispatch.bindings);
  step.group = bind(step, buffers);
  step.groups_x = kernel.dispatch.kernel.groups_x;
  step.groups_y = kernel.dispatch.kernel.groups_y;
  step.uses_hyper = kernel.dispatch.kernel.uses_hyper;
  return step;
}

std::unique_ptr<Executable> WebGpuDevice::prepare(const Program& program,
                                                  std::span<const BufferHandle> buffers) {
  const std::lock_guard lock(mutex_);
  throw_faults();
  CHECK(buffers.size() == program.buffers.size());
  const auto could_use_subgroups = [](const Launch& launch) {
    return launch.kind == LaunchKind::kRow || launch.kind == LaunchKind::kContraction ||
           launch.kind == LaunchKind::kScatter ||
           (launch.kind == LaunchKind::kSelectiveScan &&
            launch.selective == SelectivePart::kBackward);
  };
  if (!subgroups_ &&
      std::any_of(program.launches.begin(), program.launches.end(), could_use_subgroups)) {
    subgroups_ = find_subgroups();
  }
  std::vector<Dispatch> dispatches =
      write_dispatches(program, kernel_options(), info_.limits.max_storage_bindings);
  const auto tried = tune(program, dispatches);
  std::vector<Kernel> kernels;
  for (Dispatch& each : dispatches) {
    kernels.push_back(kernel_of(program, std::move(each)));
    check_kernel(kernels.back());
  }
  const auto kept = compile_together(kernels);
  auto executable = std::make_unique<WebGpuExecutable>(mutex_);
  executable->program = &program;
  for (Kernel& kernel : kernels) {
    executable->steps.push_back(make_step(std::move(kernel), buffers));
    executable->uses_hyper |= executable->steps.back().uses_hyper;
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
    const auto& bindings = step.bindings;
    if (std::none_of(bindings.begin(), bindings.end(),
                     [&](const Binding& each) { return each.buffer == changed; }))
      continue;
    made.emplace_back(&step, bind(step, buffers));
  }
  for (auto& [step, group] : made) step->group = std::move(group);
  executable.validated = false;
}

}  // namespace tensorgrad::webgpu
