// SPDX-License-Identifier: MIT
// Prepares programs: compiles one kernel per distinct text and creates one bind group per launch.
#include <algorithm>
#include <utility>

#include "backend/webgpu/device.h"
#include "base/check.h"

namespace tensorgrad::webgpu {
namespace {

Kernel kernel_of(const Program& program, Dispatch dispatch) {
  const Launch& first = program.launches[dispatch.first];
  Kernel kernel{
      first.name, first.locations.empty() ? SourceLocation() : first.locations.front(), {}};
  if (dispatch.count > 1) kernel.name += "_and_" + std::to_string(dispatch.count - 1);
  kernel.dispatch = std::move(dispatch);
  return kernel;
}

}  // namespace

std::unique_ptr<Executable> WebGpuDevice::prepare(const Program& program,
                                                  std::span<const BufferHandle> buffers) {
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
  CHECK(buffers.size() == program.buffers.size());
  const auto could_use_subgroups = [](const Launch& launch) {
    const auto* opaque = launch.find<OpaqueLaunch>();
    return launch.is<RowLaunch>() || launch.is<ContractionLaunch>() || launch.is<ScatterLaunch>() ||
           (opaque != nullptr && opaque->kernel->uses_subgroups);
  };
  if (std::any_of(program.launches.begin(), program.launches.end(), could_use_subgroups)) {
    probe_.try_subgroups();
  }
  const WgslOptions options = kernel_options();
  std::vector<Dispatch> dispatches =
      write_dispatches(program, options, info().limits.max_storage_bindings);
  const auto tried = tuner_.tune(program, options, dispatches);
  std::vector<Kernel> kernels;
  for (Dispatch& each : dispatches) {
    kernels.push_back(kernel_of(program, std::move(each)));
    pipelines_.check(kernels.back());
  }
  const auto kept = pipelines_.compile_together(kernels);
  auto executable = std::make_unique<WebGpuExecutable>(mutex_);
  executable->program = &program;
  executable->buffers.assign(buffers.begin(), buffers.end());
  const std::vector<const Buffer*> bound = find(buffers);
  for (Kernel& kernel : kernels) {
    executable->dispatches.push_back(pipelines_.make_dispatch(std::move(kernel), bound));
    executable->uses_scalars |= executable->dispatches.back().uses_scalars;
  }
  pipelines_.drop_unused();
  return executable;
}

std::vector<std::pair<BoundDispatch*, Handle<WGPUBindGroup>>> WebGpuDevice::bind_changed(
    WebGpuExecutable& executable, std::span<const BufferHandle> buffers,
    const std::function<bool(std::size_t buffer)>& changed) {
  const std::vector<const Buffer*> bound = find(buffers);
  std::vector<std::pair<BoundDispatch*, Handle<WGPUBindGroup>>> made;
  for (BoundDispatch& dispatch : executable.dispatches) {
    const bool binds = std::any_of(
        dispatch.bindings.begin(), dispatch.bindings.end(),
        [&](const Binding& each) { return changed(static_cast<std::size_t>(each.buffer)); });
    if (binds) made.emplace_back(&dispatch, pipelines_.bind(dispatch, bound));
  }
  return made;
}

void WebGpuDevice::rebind(Executable& any, std::span<const BufferHandle> buffers, int changed) {
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
  WebGpuExecutable& executable = own(any);
  auto made = bind_changed(executable, buffers, [&](std::size_t buffer) {
    return buffer == static_cast<std::size_t>(changed);
  });
  for (BoundDispatch& dispatch : executable.dispatches) dispatch.others.clear();
  for (auto& [dispatch, group] : made) dispatch->group = std::move(group);
  executable.buffers.assign(buffers.begin(), buffers.end());
  executable.sets = 1;
  executable.validated = false;
}

void WebGpuDevice::add_set(Executable& any, std::span<const BufferHandle> buffers) {
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
  WebGpuExecutable& executable = own(any);
  auto made = bind_changed(executable, buffers, [&](std::size_t buffer) {
    return buffers[buffer] != executable.buffers[buffer];
  });
  for (auto& [dispatch, group] : made) dispatch->others.push_back(std::move(group));
  ++executable.sets;
}

}  // namespace tensorgrad::webgpu
