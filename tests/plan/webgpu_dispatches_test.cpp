// SPDX-License-Identifier: MIT
// The dispatches of WebGPU for launches that are concurrent or in a fused sequence.
#include "backend/webgpu/device.h"
#include "codegen/wgsl/writer.h"
#include "plan/networks.h"

namespace tensorgrad::testing {
namespace {

// If there are enough bindings, the device dispatches as often as the plan counts.
TEST(Beside, is_joined_on_webgpu_as_planned) {
  GraphBuilder s;
  const std::shared_ptr<Device> device = device_at(Where::kWebGpu);
  const int bindings = device->info().limits.max_storage_bindings;
  const Program program = compile_for_test(three_layers(s), bindings, 0, true, bindings).program;
  auto& webgpu = dynamic_cast<webgpu::WebGpuDevice&>(*device);
  const auto dispatches = write_dispatches(program, webgpu.kernel_options(), bindings);
  EXPECT_EQ(static_cast<std::int64_t>(dispatches.size()), count_dispatches(program));
  EXPECT_LT(dispatches.size(), program.launches.size());
  // With fewer bindings than the plan assumed, some launches run one after the other.
  EXPECT_GT(write_dispatches(program, webgpu.kernel_options(), 4).size(), dispatches.size());
  WgslOptions separate = webgpu.kernel_options();
  separate.separate = true;
  EXPECT_EQ(write_dispatches(program, separate, bindings).size(), program.launches.size());
}

TEST(FusedSequence, is_one_kernel_if_it_fits_on_webgpu) {
  GraphBuilder s;
  network(s, 256, {1, 64, 64, 1});
  const std::shared_ptr<Device> device = device_at(Where::kWebGpu);
  auto& webgpu = dynamic_cast<webgpu::WebGpuDevice&>(*device);
  const Program program = fused_sequence(s.graph()).program;
  const auto dispatches = write_dispatches(program, webgpu.kernel_options(), kChainBindings);
  EXPECT_EQ(static_cast<std::int64_t>(dispatches.size()), count_dispatches(program));
  // With few bindings, the sequence is split into halves that run one after the other.
  const auto halves = write_dispatches(program, webgpu.kernel_options(), 9);
  EXPECT_GT(halves.size(), dispatches.size());
  EXPECT_LT(halves.size(), program.launches.size());
}

}  // namespace
}  // namespace tensorgrad::testing
