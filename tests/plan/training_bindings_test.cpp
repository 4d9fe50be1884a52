// SPDX-License-Identifier: MIT
// Whole training steps of language models within the minimum limits of WebGPU: loss, gradients,
// clipping and AdamW bind at most eight buffers and compute the results of the CPU.
#include <algorithm>
#include <set>

#include "debug/wrapped_device.h"
#include "support/graph_builder.h"
#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using nn::MixerKind;

constexpr std::int64_t kSigns = 11;
constexpr std::size_t kMinBindings = 8;

// Wraps a device and records the number of buffers that each launch binds.
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
  ASSERT_EQ(device->info().limits.max_storage_bindings, static_cast<int>(kMinBindings));
  const nn::LanguageModelConfig config = small_mamba(kSigns, layers, 24);
  const Trained got = trained(config, 2, options), want = trained(config, 2, {.kind = "cpu"});
  std::size_t most = 0;
  for (const auto& [name, bindings] : device->launches) {
    EXPECT_LE(bindings, kMinBindings) << name;
    most = std::max(most, bindings);
  }
  EXPECT_GT(most, kMinBindings / 2) << "so few that nothing is tried";
  expect_trained_alike(got, want);
}

// Software drivers take long to compile kernels, so each kind of layer is a separate test.
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

// A text model with tied embeddings, whose parameters need several bindings of 52 KiB. The launches
// of the head and of the last norm read both the first and the last parameters.
void tied_model_binds_its_parameters_in_parts(const std::vector<MixerKind>& layers) {
  constexpr std::int64_t kLimit = 52 << 10;
  const auto device = std::make_shared<RecordingDevice>(device_at(Where::kWebGpuDefaultLimits));
  device->told.limits.max_binding_bytes = kLimit;
  DeviceOptions options;
  options.opened = device;
  nn::LanguageModelConfig config = small_mamba(kSigns, layers, 24);
  config.d_model = 48;
  const Trained got = trained(config, 2, options), want = trained(config, 2, {.kind = "cpu"});
  bool several = false, apart = false;
  for (const Program& program : device->programs) {
    for (const BufferDecl& buffer : program.buffers)
      several = several || (buffer.kind == BufferKind::kParams && buffer.bytes > kLimit);
    for (const Launch& launch : program.launches) {
      std::set<int> buffers;
      for (const Binding& binding : launch.bindings) {
        EXPECT_LE(binding.bytes, kLimit) << launch.name;
        apart = apart || !buffers.insert(binding.buffer).second;
      }
      EXPECT_LE(launch.bindings.size(), kMinBindings) << launch.name;
    }
  }
  EXPECT_TRUE(several) << "all parameters fit one binding";
  EXPECT_TRUE(apart) << "no launch binds two parts of them";
  expect_trained_alike(got, want);
}
TEST(LeastLimits, tied_mamba1_binds_its_parameters_in_parts_on_webgpu) {
  tied_model_binds_its_parameters_in_parts({MixerKind::kMamba1, MixerKind::kMamba1});
}
TEST(LeastLimits, tied_attention_and_mlp_binds_its_parameters_in_parts_on_webgpu) {
  tied_model_binds_its_parameters_in_parts({MixerKind::kAttention, MixerKind::kMlp});
}

// Models of realistic size. The null device throws if a program exceeds its limits.
void plans_tied_model_beyond_a_binding(const std::vector<MixerKind>& layers) {
  nn::LanguageModelConfig config{.vocab_size = 256, .d_model = 768, .layers = layers, .heads = 8};
  config.n_layer = static_cast<std::int64_t>(layers.size());
  DeviceOptions options;
  const auto device = std::make_shared<RecordingDevice>(make_null_device({}));
  options.opened = device;
  const auto trainer = compile(nn::LanguageModel(config),
                               [](const nn::LanguageModel& net, const Inputs& in) {
                                 return net.loss(in["tokens"], in["next"]);
                               },
                               {.inputs = {{"tokens", {2, 128}, i32}, {"next", {2, 128}, i32}},
                                .optimizer = optim::AdamW{},
                                .device = options});
  std::int64_t parameters = 0;
  for (const BufferDecl& buffer : device->programs.at(0).buffers)
    parameters += buffer.kind == BufferKind::kParams ? buffer.bytes : 0;
  EXPECT_GT(parameters, DeviceLimits{}.max_binding_bytes);
  EXPECT_GT(trainer.report().launches, 100);
}
TEST(LeastLimits, plans_tied_mamba1_with_more_parameters_than_a_binding) {
  plans_tied_model_beyond_a_binding(std::vector<MixerKind>(12, MixerKind::kMamba1));
}
TEST(LeastLimits, plans_tied_attention_and_mlp_with_more_parameters_than_a_binding) {
  std::vector<MixerKind> layers;
  for (int i = 0; i < 6; ++i) layers.insert(layers.end(), {MixerKind::kAttention, MixerKind::kMlp});
  plans_tied_model_beyond_a_binding(layers);
}

}  // namespace
}  // namespace tensorgrad::testing
