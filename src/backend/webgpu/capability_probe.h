// SPDX-License-Identifier: MIT
// What the device can do: its limits and features, and what only trial kernels can tell.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "backend/webgpu/pipeline_cache.h"
#include "backend/webgpu/submit_queue.h"
#include "codegen/wgsl/writer.h"

namespace tensorgrad::webgpu {

// info() does not change after the constructor. A rejected trial kernel is no error: the device
// lacks the capability.
//
// Lock: callers hold the mutex of the WebGpuDevice, except for info().
class CapabilityProbe {
 public:
  // Runs the trials that info() depends on.
  CapabilityProbe(SubmitQueue& queue, PipelineCache& pipelines, const Adapter& adapter, bool f16x3);

  [[nodiscard]] const DeviceInfo& info() const { return info_; }
  // Runs the trial for exchange within a subgroup, unless it has run. Until then, kernels do not
  // use it.
  void try_subgroups();
  // Returns `forced` with what this device can do. `forced` has what a test or the tuning cache
  // selects.
  [[nodiscard]] WgslOptions kernel_options(const WgslOptions& forced) const;

 private:
  std::vector<std::byte> try_kernel(const std::string& name, const std::string& text,
                                    std::size_t bytes);
  bool rounds_as_f16();
  SubgroupMatrix find_subgroup_matrix(int subgroup);
  Subgroups find_subgroups();

  SubmitQueue& queue_;
  PipelineCache& pipelines_;
  const bool f16x3_;  // for products of f32
  DeviceInfo info_;
  const int least_subgroup_;
  SubgroupMatrix subgroup_matrix_;
  std::optional<Subgroups> subgroups_;  // unset until a kernel could use them
};

}  // namespace tensorgrad::webgpu
