// SPDX-License-Identifier: MIT
// Whole training steps of language models within the least limits of WebGPU: loss, gradients,
// clipping and AdamW bind eight buffers at most, and compute what the CPU does.
#include <algorithm>
#include <cmath>

#include "debug/wrapped_device.h"
#include "support/sketch.h"
#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using nn::MixerKind;

constexpr std::int64_t kTexts = 2, kTextLength = 20, kSigns = 11;
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

auto language_trainer(const std::vector<MixerKind>& layers, const DeviceOptions& device) {
  return compile(
      nn::MambaLM(small_mamba(kSigns, layers, 24)),
      [](const nn::MambaLM& net, const Inputs& in) {
        return cross_entropy(net(in["tokens"]), in["next"]);
      },
      {.inputs = {{"tokens", {kTexts, kTextLength}, i32}, {"next", {kTexts, kTextLength}, i32}},
       // Where a gradient is nearly 0 its sign is that of rounding: not so with this.
       .optimizer = optim::AdamW{.lr = 1e-2, .eps = 1e-3},
       .groups = {nn::MambaLM::no_weight_decay()},
       .clip_grad_norm = 0.1,
       .seed = 5,
       .device = device});
}

// Losses of two steps and what the parameters are then.
struct StepsTaken {
  std::vector<double> losses;
  std::map<std::string, HostTensor> params;
};

StepsTaken two_steps(const std::vector<MixerKind>& layers, const DeviceOptions& device) {
  auto trainer = language_trainer(layers, device);
  StepsTaken taken;
  for (unsigned step = 0; step < 2; ++step) {
    const auto text = [&](unsigned seed) {
      return random_tokens(kTexts * kTextLength, kSigns, seed);
    };
    taken.losses.push_back(
        trainer.step({{"tokens", text(2 * step)}, {"next", text(2 * step + 1)}}).loss);
  }
  taken.params = trainer.download_params();
  return taken;
}

void binds_eight_at_most(const std::vector<MixerKind>& layers) {
  DeviceOptions options;
  const auto device = std::make_shared<BindingsDevice>(device_at(Where::kWebGpuDefaultLimits));
  options.opened = device;
  ASSERT_EQ(device->info().limits.max_storage_bindings, static_cast<int>(kLeastBindings));
  const StepsTaken got = two_steps(layers, options), want = two_steps(layers, {.kind = "cpu"});
  std::size_t most = 0;
  for (const auto& [name, bindings] : device->launches) {
    EXPECT_LE(bindings, kLeastBindings) << name;
    most = std::max(most, bindings);
  }
  EXPECT_GT(most, kLeastBindings / 2) << "so few that nothing is tried";
  for (std::size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], 1e-5) << "step " << i;
  ASSERT_EQ(got.params.size(), want.params.size());
  for (const auto& [name, tensor] : want.params) {
    const std::vector<float> a = got.params.at(name).floats(), b = tensor.floats();
    for (std::size_t i = 0; i < b.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(b[i]))) << name << ' ' << i;
  }
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
