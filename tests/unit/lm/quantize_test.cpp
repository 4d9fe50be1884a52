// SPDX-License-Identifier: MIT
// Quantized models compute the same as their dequantized weights, and can be saved and loaded.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "counts/large_gpu.h"
#include "support/temp_dir.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using lm::SavedModel;
using nn::MixerKind;
using nn::WeightFormat;

constexpr std::int64_t kQuantizedVocab = 40;

nn::LanguageModelConfig quantizable(std::vector<MixerKind> layers, bool tied) {
  nn::LanguageModelConfig config{.vocab_size = kQuantizedVocab, .d_model = 32};
  config.n_layer = static_cast<std::int64_t>(layers.size());
  config.layers = std::move(layers);
  config.mamba.d_state = 4;
  config.mamba2 = {.d_state = 6, .head_dim = 16, .chunk = 4};
  config.mamba3 = {.d_state = 6, .head_dim = 16, .chunk = 4};
  config.heads = 2;
  config.attention.max_length = 16;
  config.mlp_width = 64;
  config.shared = {.heads = 2,
                   .attention = {.max_length = 16},
                   .mlp_width = 64,
                   .adapter_rank = 32,
                   .attention_adapters = true};
  config.tie_embeddings = tied;
  return config;
}

CompiledFunction quantized_forward(const nn::LanguageModelConfig& config,
                                   const std::string& device = "cpu") {
  return compile_function(
      nn::LanguageModel(config),
      [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
      {.inputs = {{"tokens", {2, 11}, i32}},
       .device = {.kind = device, .allow_software = true},
       .seed = 3});
}

SavedModel some_model(const nn::LanguageModelConfig& config) {
  return {config, quantized_forward(config).download_params()};
}

std::vector<float> logits(const SavedModel& model, const std::string& device = "cpu") {
  std::vector<std::int32_t> tokens(22);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int32_t>(i * 7 % kQuantizedVocab);
  CompiledFunction forward = quantized_forward(model.config, device);
  forward.upload_params(model.weights);
  return forward({{"tokens", tokens}}).floats();
}

double furthest(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
  return most;
}

const std::vector<MixerKind> kEveryLayer = {MixerKind::kMamba1, MixerKind::kMamba2,
                                            MixerKind::kMamba3, MixerKind::kAttention,
                                            MixerKind::kMlp,    MixerKind::kMoe};

// `uses`: number of layers that read a rounded weight.
void computes_what_its_weights_say(const SavedModel& model, int uses = 1) {
  const std::vector<float> whole = logits(model);
  const std::map<WeightFormat, double> near = {{WeightFormat::kF16, 0.01},
                                               {WeightFormat::kBf16, 0.05},
                                               {WeightFormat::kInt8, 0.05},
                                               {WeightFormat::kInt8PerTensor, 0.1},
                                               {WeightFormat::kInt4, 0.6}};
  for (const auto& [format, bound] : near) {
    const SavedModel packed = lm::quantize(model, format);
    const std::vector<float> got = logits(packed);
    EXPECT_LT(furthest(got, logits(lm::quantize(packed, WeightFormat::kF32))), 1e-5)
        << nn::to_string(format);
    const double cost = furthest(got, whole);
    EXPECT_GT(cost, 0) << nn::to_string(format);
    EXPECT_LT(cost, uses * bound) << nn::to_string(format);
  }
}

TEST(Quantized, model_computes_with_its_rounded_weights) {
  computes_what_its_weights_say(some_model(quantizable(kEveryLayer, false)));
}
TEST(Quantized, SharedBlocksComputeWhatTheirWeightsSay) {
  const MixerKind shared = MixerKind::kMamba2Shared;
  const SavedModel model = some_model(quantizable({shared, shared}, false));
  computes_what_its_weights_say(model, 2);
  const SavedModel packed = lm::quantize(model, WeightFormat::kInt8);
  for (const char* name :
       {"shared.0.attention.in_proj", "shared.0.attention.out_proj", "shared.0.fc1", "shared.0.fc2",
        "layers.1.shared.out", "layers.1.shared.q.up", "layers.1.shared.mlp.down"}) {
    EXPECT_TRUE(packed.weights.contains("backbone." + std::string(name) + ".weight.data")) << name;
  }
}
TEST(Quantized, Gpt2ComputesWhatItsWeightsSay) {
  computes_what_its_weights_say(some_model(nn::gpt2_config(kQuantizedVocab, 32, 2, 2, 16)));
}

// Tests every format in a small model, and every kind of layer in one format.
void computes_the_same_on_webgpu(const SavedModel& model, WeightFormat format) {
  const SavedModel packed = lm::quantize(model, format);
  EXPECT_LT(furthest(logits(packed, "webgpu"), logits(packed)), 1e-4) << nn::to_string(format);
}
TEST(Quantized, model_computes_the_same_on_webgpu) {
  const SavedModel model = some_model(quantizable({MixerKind::kMamba1}, true));
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kBf16, WeightFormat::kInt8,
                                    WeightFormat::kInt8PerTensor, WeightFormat::kInt4})
    computes_the_same_on_webgpu(model, format);
}
TEST(Quantized, every_kind_of_layer_computes_the_same_on_webgpu) {
  computes_the_same_on_webgpu(some_model(quantizable(kEveryLayer, false)), WeightFormat::kInt8);
}

TEST(Quantized, model_round_trips_through_a_file) {
  const test::TempDir folder;
  const std::string path = folder / "quantized.safetensors";
  const SavedModel model = some_model(quantizable({MixerKind::kMamba1}, true));
  lm::save_model(path, model);
  const auto whole = std::filesystem::file_size(path);
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kBf16, WeightFormat::kInt8,
                                    WeightFormat::kInt8PerTensor, WeightFormat::kInt4}) {
    const SavedModel packed = lm::quantize(model, format);
    lm::save_model(path, packed);
    EXPECT_LT(std::filesystem::file_size(path), whole * 3 / 4);
    const SavedModel read = lm::load_model(path);
    EXPECT_EQ(read.config.weight_format, format);
    ASSERT_EQ(read.weights.size(), packed.weights.size());
    for (const auto& [name, tensor] : packed.weights) {
      EXPECT_EQ(read.weights.at(name).dtype, tensor.dtype) << name;
      EXPECT_EQ(read.weights.at(name).bytes, tensor.bytes) << name;
    }
  }
  SavedModel wrong = lm::quantize(model, WeightFormat::kInt8);
  wrong.weights.erase("backbone.embedding.weight.scale");
  EXPECT_THROW(lm::save_model(path, wrong), UserError);
}

// A step reads the packed weights. The planned memory has no room for an f32 copy.
void decoder_has_room_for_the_bits(const DeviceOptions& device) {
  nn::LanguageModelConfig config = quantizable({MixerKind::kMamba1, MixerKind::kMamba1}, true);
  config.vocab_size = 512;
  config.d_model = 128;
  const SavedModel model = some_model(config);
  const auto bytes = [](const SavedModel& of) {
    std::int64_t sum = 0;
    for (const auto& [name, tensor] : of.weights)
      sum += static_cast<std::int64_t>(tensor.bytes.size());
    return sum;
  };
  const auto peak = [&](const SavedModel& of) {
    return lm::Decoder(of, {.device = device}).forward().report().peak_bytes;
  };
  const std::int64_t others = peak(model) - bytes(model);
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kInt8, WeightFormat::kInt4}) {
    const SavedModel packed = lm::quantize(model, format);
    // Buffers are multiples of 256 bytes, and each packed weight has its own.
    EXPECT_LE(peak(packed), bytes(packed) + others + 16'384) << nn::to_string(format);
  }
}
TEST(Quantized, decoder_allocates_only_quantized_weights) {
  decoder_has_room_for_the_bits({.kind = "cpu"});
}
// Planned for the minimum limits of WebGPU, and for a large GPU.
TEST(Quantized, decoder_allocates_only_quantized_weights_on_webgpu) {
  decoder_has_room_for_the_bits({.kind = "null"});
  decoder_has_room_for_the_bits(large_gpu());
}

}  // namespace
}  // namespace tensorgrad::testing
