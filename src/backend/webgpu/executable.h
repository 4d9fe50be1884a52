// SPDX-License-Identifier: MIT
// What the device prepares for a program: kernels, their pipelines, and the dispatches.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/webgpu/api.h"
#include "backend/webgpu/process.h"
#include "codegen/wgsl/join.h"

namespace tensorgrad::webgpu {

// A kernel to be compiled, with the name and location for error messages.
struct Kernel {
  std::string name;
  SourceLocation location;
  Dispatch dispatch;
};

// A compiled kernel. Launches with equal text share one.
struct Pipeline {
  Handle<WGPUComputePipeline> handle;
  WGPUBindGroupLayout layout = nullptr;  // these two are owned by the PipelineCache
  WGPUPipelineLayout whole = nullptr;
};

struct BindGroup {
  Handle<WGPUBindGroup> handle;
  std::vector<std::uint64_t> buffers;  // their numbers
  bool validated = false;              // ran once without an error
};
inline constexpr std::size_t kMaxKeptGroups = 8;  // of a dispatch

struct BoundDispatch {
  std::string name;
  SourceLocation location;
  std::size_t launches = 1;  // number of the program's launches in this dispatch
  std::vector<Binding> bindings;
  std::shared_ptr<Pipeline> pipeline;
  BindGroup group;  // of set 0
  // Previous bind groups, the most recent last. Outputs and inputs on the device alternate between
  // few buffers, and creating and validating a bind group waits for the driver.
  std::vector<BindGroup> kept;
  std::vector<Handle<WGPUBindGroup>> others;  // of the other sets; empty if they bind the same
  std::uint32_t groups_x = 1, groups_y = 1;
  bool uses_scalars = false;
  int timed_runs = 1;                     // dispatches per pass of LaunchProfiler::profile()
  double once = 0;                        // microseconds that a pass took with one dispatch
  std::chrono::duration<double> took{0};  // see Runner

  // Returns the bind group of a set after the first.
  [[nodiscard]] WGPUBindGroup bind_group(std::size_t set) const {
    return others.empty() ? group.handle.get() : others[set - 1].get();
  }
};

// The staging buffers of a HostRange. They are kept, since creating buffers takes long.
struct RangeStaging {
  std::int64_t bytes = 0;
  Handle<WGPUBuffer> down, up;            // from and to the device
  Ticket down_mapped = 0, up_mapped = 0;  // in the current run
};

class WebGpuExecutable final : public Executable {
 public:
  // Is in `all`, the executables of the device, as long as it exists.
  WebGpuExecutable(DeviceMutex& mutex, std::set<WebGpuExecutable*>& all)
      : mutex_(mutex), all_(all) {
    all_.insert(this);
  }
  WebGpuExecutable(const WebGpuExecutable&) = delete;
  WebGpuExecutable& operator=(const WebGpuExecutable&) = delete;
  // Dawn does not allow objects of a device to be released while another thread uses the device.
  ~WebGpuExecutable() override {
    if (forked()) return;
    const std::lock_guard lock(mutex_);
    all_.erase(this);
    dispatches.clear();
    staging.clear();
  }

  const Program* program = nullptr;
  std::vector<BoundDispatch> dispatches;
  std::vector<BufferHandle> buffers;  // of set 0; see Device::add_set()
  std::size_t sets = 1;
  bool uses_scalars = false;
  bool validated = false;  // all bind groups are
  int limited_runs = 0;
  std::vector<RangeStaging> staging;  // of the ranges of the last run_replacing()

 private:
  DeviceMutex& mutex_;
  std::set<WebGpuExecutable*>& all_;
};

}  // namespace tensorgrad::webgpu
