// SPDX-License-Identifier: MIT
// Decodes a long prompt with the default options of the decoder, then single tokens. Compares the
// logits with one pass over the whole text and with double precision. Errors are at most
// 1e-5 * max(1, |logit|). They are due to rounding: if each op of the graph were exact and its
// result rounded to f32, they would be up to 4e-6.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "backend/reference/interpreter.h"
#include "ops/registry.h"
#include "support/sanitized.h"
#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using lm::SavedModel;
using nn::MixerKind;

constexpr std::int64_t kDecoded = 12, kWords = 32;
constexpr double kNear = 1e-5;
constexpr float kSlower = 4;  // subtracted from the logarithms of decay rates

// Returns a configuration with the default chunk sizes.
nn::LanguageModelConfig by_defaults(const std::vector<MixerKind>& layers, std::int64_t length) {
  nn::LanguageModelConfig config = small_mamba(kWords, layers, length);
  config.mamba2 = {.d_state = 6, .head_dim = 8};
  config.mamba3 = {.d_state = 6, .head_dim = 8, .ranks = 2};
  return config;
}

CompiledFunction whole_text(const nn::LanguageModelConfig& config, std::int64_t length,
                            const std::string& device) {
  return compile_function(
      nn::LanguageModel(config),
      [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
      {.inputs = {{"tokens", {1, length}, i32}},
       .device = {.kind = device, .allow_software = true},
       .seed = 5});
}

// Returns a model with changed weights, so that each parameter has an effect, and with decays so
// slow that the last tokens depend on the first ones.
SavedModel moved_model(const nn::LanguageModelConfig& config) {
  SavedModel model{config, whole_text(config, 1, "cpu").download_params(), {}};
  std::mt19937 random(2);
  for (auto& [name, tensor] : model.weights) {
    std::vector<float> values = tensor.floats();
    const float decay = name.ends_with("A_log") || name.ends_with("A_bias") ? kSlower : 0;
    for (float& v : values) v += 0.3F * (static_cast<float>(random() % 2001) / 1000.0F - 1) - decay;
    tensor = HostTensor::from(tensor.shape, values);
  }
  return model;
}

std::vector<double> in_double(const CompiledFunction& whole, const SavedModel& model,
                              const std::vector<std::int32_t>& text) {
  const Graph graph = parse(whole.graph().text, "whole", find_op);
  InterpretOptions options;
  options.leaf = [&](const Node& leaf) -> std::vector<double> {
    const std::string name = leaf.attrs.text("name");
    if (name == "tokens") return {text.begin(), text.end()};
    const std::vector<float> values = model.weights.at(name).floats();
    return {values.begin(), values.end()};
  };
  return interpret(graph, options).at(static_cast<std::size_t>(graph.outputs.at(0).value)).data;
}

// Returns the largest |difference| / max(1, |want|) of the logits at `place`.
template <class Want>
double furthest_at(std::span<const float> got, const std::vector<Want>& want, std::int64_t place) {
  double most = 0;
  for (std::size_t k = 0; k < kWords; ++k) {
    const double there = want[static_cast<std::size_t>(place * kWords) + k];
    most = std::max(most, std::abs(got[k] - there) / std::max(1.0, std::abs(there)));
  }
  return most;
}

void long_prompt_is_the_whole(const std::vector<MixerKind>& layers, std::int64_t prompt,
                              const std::string& device) {
  const std::int64_t length = prompt + kDecoded;
  const SavedModel model = moved_model(by_defaults(layers, length));
  CompiledFunction whole = whole_text(model.config, length, device);
  whole.upload_params(model.weights);
  const std::vector<std::int32_t> text = random_tokens(length, kWords, 3);
  const std::vector<float> all = whole({{"tokens", text}}).floats();
  const std::vector<double> exact = in_double(whole, model, text);
  const auto of_whole = [&](std::int64_t from) {
    double most = 0;
    for (std::int64_t place = from; place < length; ++place) {
      const auto begin = static_cast<std::size_t>(place * kWords);
      most = std::max(most, furthest_at(std::span(all).subspan(begin, kWords), exact, place));
    }
    return most;
  };
  EXPECT_LT(of_whole(prompt - 1), kNear) << "the whole model and double precision";
  EXPECT_LT(of_whole(0), 3 * kNear) << "the same at its worst place";

  lm::Decoder decoder(model, {.device = {.kind = device, .allow_software = true}});
  std::span<const float> logits = decoder.prefill(
      std::vector<std::vector<std::int32_t>>{{text.begin(), text.begin() + prompt}});
  double between = 0, of_decoder = 0;
  for (std::int64_t place = prompt - 1; place < length; ++place) {
    between = std::max(between, furthest_at(logits, all, place));
    of_decoder = std::max(of_decoder, furthest_at(logits, exact, place));
    if (place + 1 < length) logits = decoder.step({&text[static_cast<std::size_t>(place + 1)], 1});
  }
  EXPECT_LT(between, kNear) << "the decoder and the whole model";
  EXPECT_LT(of_decoder, kNear) << "the decoder and double precision";
  if (prompt >= 256) {
    EXPECT_THAT(decoder.forward().compiled_sizes(), ::testing::Contains(256));
  }
}

// Chunks of 256, 64, 16 and 4 tokens, two layers.
void long_prompt_is_the_whole_on_cpu(MixerKind kind) {
  long_prompt_is_the_whole({kind, kind}, 700, "cpu");
}
// Chunks of 256 and 64 tokens, one layer. Software drivers are slow to compile kernels.
void long_prompt_is_the_whole_on_webgpu(MixerKind kind) {
  long_prompt_is_the_whole({kind}, 704, "webgpu");
}

TEST(LmLongPrompt, of_mamba1_is_the_whole_on_cpu) {
  long_prompt_is_the_whole_on_cpu(MixerKind::kMamba1);
}
TEST(LmLongPrompt, of_mamba2_is_the_whole_on_cpu) {
  long_prompt_is_the_whole_on_cpu(MixerKind::kMamba2);
}
TEST(LmLongPrompt, of_mamba3_is_the_whole_on_cpu) {
  long_prompt_is_the_whole_on_cpu(MixerKind::kMamba3);
}
TEST(LmLongPrompt, of_attention_is_the_whole_on_cpu) {
  long_prompt_is_the_whole_on_cpu(MixerKind::kAttention);
}
// Lengths near the chunk sizes. If a layer has no cache, the tests of its ops cover such lengths.
TEST(LmLongPrompt, of_attention_is_the_whole_for_every_length_on_cpu) {
  for (const std::int64_t length : {1, 2, 63, 64, 65, 257, 1000}) {
    SCOPED_TRACE(length);
    long_prompt_is_the_whole({MixerKind::kAttention}, length, "cpu");
  }
}

// A model of realistic width and depth, with the default states and heads, and initial weights.
TEST(LmLongPrompt, of_a_wide_model_is_the_whole_on_cpu) {
  constexpr std::int64_t kPrompt = 90, kVocab = 500, kLayers = kSanitized ? 2 : 8;
  for (const MixerKind kind : {MixerKind::kMamba1, MixerKind::kMamba2, MixerKind::kMamba3}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const nn::LanguageModelConfig config{.vocab_size = kVocab,
                                         .d_model = 256,
                                         .n_layer = kLayers,
                                         .layers = std::vector<MixerKind>(kLayers, kind)};
    constexpr std::int64_t kLength = kPrompt + kDecoded;
    CompiledFunction whole = whole_text(config, kLength, "cpu");
    const std::vector<std::int32_t> text = random_tokens(kLength, kVocab, 3);
    const std::vector<float> all = whole({{"tokens", text}}).floats();
    lm::Decoder decoder(SavedModel{config, whole.download_params(), {}},
                        {.device = {.kind = "cpu"}});
    std::span<const float> logits = decoder.prefill(
        std::vector<std::vector<std::int32_t>>{{text.begin(), text.begin() + kPrompt}});
    double most = 0;
    for (std::int64_t place = kPrompt - 1; place < kLength; ++place) {
      for (std::size_t k = 0; k < kVocab; ++k) {
        const double want = all[static_cast<std::size_t>(place * kVocab) + k];
        most = std::max(most, std::abs(logits[k] - want) / std::max(1.0, std::abs(want)));
      }
      if (place + 1 < kLength)
        logits = decoder.step({&text[static_cast<std::size_t>(place + 1)], 1});
    }
    EXPECT_LT(most, kNear);
  }
}

TEST(LmLongPrompt, of_mamba1_is_the_whole_on_webgpu) {
  long_prompt_is_the_whole_on_webgpu(MixerKind::kMamba1);
}
TEST(LmLongPrompt, of_mamba2_is_the_whole_on_webgpu) {
  long_prompt_is_the_whole_on_webgpu(MixerKind::kMamba2);
}
TEST(LmLongPrompt, of_mamba3_is_the_whole_on_webgpu) {
  long_prompt_is_the_whole_on_webgpu(MixerKind::kMamba3);
}
TEST(LmLongPrompt, of_attention_is_the_whole_on_webgpu) {
  long_prompt_is_the_whole_on_webgpu(MixerKind::kAttention);
}

}  // namespace
}  // namespace tensorgrad::testing
