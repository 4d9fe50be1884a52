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

// Returns the numbers of the buffers that a dispatch binds.
std::vector<std::uint64_t> numbers_of(const BoundDispatch& dispatch,
                                      std::span<const Buffer* const> buffers) {
  std::vector<std::uint64_t> numbers;
  for (const Binding& binding : dispatch.bindings) {
    const Buffer* const buffer = buffers[static_cast<std::size_t>(binding.buffer)];
    numbers.push_back(buffer == nullptr ? 0 : buffer->number);
  }
  return numbers;
}

// Returns the index of the kept bind group of these buffers, or -1.
std::ptrdiff_t find_kept(const BoundDispatch& dispatch, const std::vector<std::uint64_t>& numbers) {
  const auto found = std::find_if(dispatch.kept.begin(), dispatch.kept.end(),
                                  [&](const BindGroup& each) { return each.buffers == numbers; });
  return found == dispatch.kept.end() ? -1 : found - dispatch.kept.begin();
}

// Returns the dispatches that bind a buffer for which `which` returns true.
template <class Which>
std::vector<BoundDispatch*> binding(WebGpuExecutable& executable, const Which& which) {
  std::vector<BoundDispatch*> found;
  for (BoundDispatch& dispatch : executable.dispatches) {
    if (std::any_of(dispatch.bindings.begin(), dispatch.bindings.end(), [&](const Binding& each) {
          return which(static_cast<std::size_t>(each.buffer));
        })) {
      found.push_back(&dispatch);
    }
  }
  return found;
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
  auto executable = std::make_unique<WebGpuExecutable>(mutex_, executables_);
  executable->program = &program;
  executable->buffers.assign(buffers.begin(), buffers.end());
  const std::vector<const Buffer*> bound = find(buffers);
  std::vector<const BoundDispatch*> made;
  executable->dispatches.reserve(kernels.size());
  for (Kernel& kernel : kernels) {
    executable->dispatches.push_back(pipelines_.make_dispatch(std::move(kernel)));
    executable->uses_scalars |= executable->dispatches.back().uses_scalars;
    made.push_back(&executable->dispatches.back());
  }
  auto groups = pipelines_.bind(made, bound);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    BoundDispatch& dispatch = executable->dispatches[i];
    dispatch.group = {std::move(groups[i]), numbers_of(dispatch, bound)};
  }
  pipelines_.drop_unused();
  return executable;
}

void WebGpuDevice::rebind(Executable& any, std::span<const BufferHandle> buffers, int changed) {
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
  WebGpuExecutable& executable = own(any);
  const std::vector<const Buffer*> bound = find(buffers);
  std::vector<const BoundDispatch*> unknown;
  const std::vector<BoundDispatch*> affected = binding(
      executable, [&](std::size_t buffer) { return buffer == static_cast<std::size_t>(changed); });
  for (const BoundDispatch* dispatch : affected) {
    if (find_kept(*dispatch, numbers_of(*dispatch, bound)) < 0) unknown.push_back(dispatch);
  }
  auto made = pipelines_.bind(unknown, bound);
  // Nothing throws from here on.
  auto next = made.begin();
  for (BoundDispatch* dispatch : affected) {
    std::vector<std::uint64_t> numbers = numbers_of(*dispatch, bound);
    const std::ptrdiff_t at = find_kept(*dispatch, numbers);
    BindGroup group = at < 0 ? BindGroup{std::move(*next++), std::move(numbers)}
                             : std::move(dispatch->kept[static_cast<std::size_t>(at)]);
    if (at >= 0) dispatch->kept.erase(dispatch->kept.begin() + at);
    if (dispatch->kept.size() == kMaxKeptGroups) dispatch->kept.erase(dispatch->kept.begin());
    dispatch->kept.push_back(std::exchange(dispatch->group, std::move(group)));
  }
  executable.validated = true;
  for (BoundDispatch& dispatch : executable.dispatches) {
    dispatch.others.clear();
    executable.validated &= dispatch.group.validated;
  }
  executable.buffers.assign(buffers.begin(), buffers.end());
  executable.sets = 1;
}

void WebGpuDevice::add_set(Executable& any, std::span<const BufferHandle> buffers) {
  const std::lock_guard lock(mutex_);
  queue_.throw_faults();
  WebGpuExecutable& executable = own(any);
  const std::vector<BoundDispatch*> affected = binding(executable, [&](std::size_t buffer) {
    return buffers[buffer] != executable.buffers[buffer];
  });
  auto groups = pipelines_.bind(std::vector<const BoundDispatch*>(affected.begin(), affected.end()),
                                find(buffers));
  for (std::size_t i = 0; i < groups.size(); ++i)
    affected[i]->others.push_back(std::move(groups[i]));
  ++executable.sets;
}

}  // namespace tensorgrad::webgpu
