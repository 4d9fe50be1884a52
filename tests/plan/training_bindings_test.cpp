// SPDX-License-Identifier: MIT
// Whole training steps of language models within the least limits of WebGPU: loss, gradients,
// clipping and AdamW bind eight buffers at most, and compute what the CPU does.
#include <algorithm>

#include "debug/wrapped_device.h"
#include "support/sketch.h"
#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using nn::MixerKind;

constexpr std::int64_t kSigns = 11;
constexpr std::size_t kLeastBindings = 8;

// Another device that notes how many buffers the launches of programs bind.
class BindingsDevice final : public WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  std::vector<std::pair<std::string, std::size_t>> launches;  // names, buffers

  std::unique_ptr<Executable> prepare(const Program& program,
                                      std::span<const BufferHandle> buffers) override {
    for (const Launch& launch : program.launches)
      launches.emplace_back(launch.name, launch.bindings.size());
    return WrappedDevice::prepare(program, buffers);
  }
};

void binds_eight_at_most(const std::vector<MixerKind>& layers) {
  DeviceOptions options;
  const auto device = std::make_shared<BindingsDevice>(device_at(Where::kWebGpuDefaultLimits));
  options.opened = device;
  ASSERT_EQ(device->info().limits.max_storage_bindings, static_cast<int>(kLeastBindings));
  const nn::LanguageModelConfig config = small_mamba(kSigns, layers, 24);
  const Trained got = trained(config, 2, options), want = trained(config, 2, {.kind = "cpu"});
  std::size_t most = 0;
  for (const auto& [name, bindings] : device->launches) {
    EXPECT_LE(bindings, kLeastBindings) << name;
    most = std::max(most, bindings);
  }
  EXPECT_GT(most, kLeastBindings / 2) << "so few that nothing is tried";
  expect_trained_alike(got, want);
}

// A driver in software takes long to compile kernels, so each kind of layer is a test of its own.
TEST(LeastLimits, step_of_mamba1_binds_eight_buffers_at_most_on_webgpu) {
  binds_eight_at_most({MixerKind::kMamba1});
}
TEST(LeastLimits, step_of_mamba2_binds_eight_buffers_at_most_on_webgpu) {
  binds_eight_at_most({MixerKind::kMamba2});
}
TEST(LeastLimits, step_of_mamba3_binds_eight_buffers_at_most_on_webgpu) {
  binds_eight_at_most({MixerKind::kMamba3});
}
TEST(LeastLimits, step_of_attention_and_mlp_binds_eight_buffers_at_most_on_webgpu) {
  binds_eight_at_most({MixerKind::kAttention, MixerKind::kMlp});
}

}  // namespace
}  // namespace tensorgrad::testing
