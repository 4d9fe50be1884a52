// SPDX-License-Identifier: MIT
// Selective scans by any number of lanes.
#include <utility>

#include "backend/webgpu/device.h"
#include "codegen/wgsl/writer.h"
#include "plan/scan_training.h"

namespace tensorgrad::testing {
namespace {

// Tests few steps, for which 0 lanes selects the kernel by blocks, and many. Of 64 lanes, most have
// no step.
TEST(SelectiveScan, by_any_number_of_lanes_matches_blocks_on_webgpu) {
  auto& device = dynamic_cast<webgpu::WebGpuDevice&>(*device_at(Where::kWebGpu));
  for (const auto& [length, discretization] :
       {std::pair(60, Discretization::kZeroOrderHold), std::pair(300, Discretization::kEuler)}) {
    ScanTraining t(2, length, 7, 5, true, discretization);
    const ValueMap want = interpret_graph(t.builder.graph(), t.builder.leaves);
    for (const int lanes : {0, 1, 4, 64}) {
      WgslOptions options;
      options.lanes = lanes;
      device.force_kernels(options);
      expect_close(t.builder.graph(),
                   run_graph(t.builder.graph(), t.builder.leaves, Where::kWebGpu), want, 1e-4,
                   std::to_string(length) + " steps, lanes " + std::to_string(lanes));
    }
    device.force_kernels({});
  }
}

}  // namespace
}  // namespace tensorgrad::testing
