// SPDX-License-Identifier: MIT
// Decodes several texts at once with models of several kinds of layers: prompts of different
// lengths, then single tokens. Compares with one pass over each whole text. Errors are at most
// 1e-5 * max(1, |logit|).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "support/message_of.h"
#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using nn::MixerKind;

constexpr std::int64_t kSyllables = 48, kTexts = 3;
using Syllables = std::vector<std::int32_t>;

CompiledFunction whole_hybrid(const nn::LanguageModelConfig& config, std::int64_t length,
                              const std::string& device) {
  return compile_function(
      nn::LanguageModel(config),
      [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
      {.inputs = {{"tokens", {kTexts, length}, i32}},
       .device = {.kind = device, .allow_software = true},
       .seed = 5});
}

nn::LanguageModelConfig hybrid_config(std::vector<MixerKind> layers, std::int64_t width,
                                      std::int64_t most) {
  nn::LanguageModelConfig config = small_mamba(kSyllables, std::move(layers), most);
  config.d_model = width;
  config.mamba2 = {.d_state = 8, .head_dim = 16, .groups = 2, .chunk = 16};
  config.mamba3 = {
      .d_state = 8, .head_dim = 16, .ranks = 2, .chunk = 16, .out_norm = nn::OutNorm::kBeforeGate};
  config.heads = 4;
  config.attention.kv_heads = 2;
  return config;
}

// Returns a model with changed weights, and with decays so slow that the last tokens depend on the
// first ones.
lm::SavedModel hybrid_model(const nn::LanguageModelConfig& config) {
  lm::SavedModel model{config, whole_hybrid(config, 1, "cpu").download_params(), {}};
  std::mt19937 random(2);
  for (auto& [name, tensor] : model.weights) {
    std::vector<float> values = tensor.floats();
    const float slower = name.ends_with("A_log") || name.ends_with("A_bias") ? 3 : 0;
    for (float& v : values)
      v += 0.1F * (static_cast<float>(random() % 2001) / 1000.0F - 1) - slower;
    tensor = HostTensor::from(tensor.shape, values);
  }
  return model;
}

// Returns the largest |difference| / max(1, |want|) between two rows of logits.
double furthest_of(std::span<const float> got, std::span<const float> want) {
  double most = 0;
  for (std::size_t k = 0; k < want.size(); ++k)
    most = std::max<double>(most, std::abs(got[k] - want[k]) / std::max(1.0F, std::abs(want[k])));
  return most;
}

// `prompts` is the length of the prompt of each text. `more` is the number of tokens decoded one by
// one after it.
void texts_are_the_whole(const nn::LanguageModelConfig& config,
                         const std::vector<std::int64_t>& prompts, std::int64_t more,
                         const std::string& device) {
  const lm::SavedModel model = hybrid_model(config);
  const std::int64_t length = *std::max_element(prompts.begin(), prompts.end()) + more;
  const Syllables all = random_tokens(kTexts * length, kSyllables, 3);
  CompiledFunction forward = whole_hybrid(config, length, device);
  forward.upload_params(model.weights);
  const std::vector<float> whole = forward({{"tokens", all}}).floats();
  const auto row = [](std::span<const float> logits, std::int64_t i) {
    return logits.subspan(static_cast<std::size_t>(i * kSyllables), kSyllables);
  };
  lm::Decoder decoder(model, {.batch = kTexts, .device = {.kind = device, .allow_software = true}});
  for (int scoped_call = 0; scoped_call < 2; ++scoped_call) {  // the second starts new texts
    std::vector<Syllables> given;
    for (std::int64_t text = 0; text < kTexts; ++text) {
      const auto begin = all.begin() + text * length;
      given.emplace_back(begin, begin + prompts[static_cast<std::size_t>(text)]);
    }
    std::span<const float> logits = decoder.prefill(given);
    for (std::int64_t step = 0;; ++step) {
      Syllables next;
      for (std::int64_t text = 0; text < kTexts; ++text) {
        const std::int64_t at = text * length + prompts[static_cast<std::size_t>(text)] + step;
        EXPECT_LT(furthest_of(row(logits, text), row(whole, at - 1)), 1e-5)
            << "turn " << scoped_call << ", text " << text << ", step " << step;
        if (step < more) next.push_back(all[static_cast<std::size_t>(at)]);
      }
      if (step == more) break;
      logits = decoder.step(next);
    }
  }
}

constexpr std::int64_t kWidth = 64;

TEST(LmHybridPrompts, of_mamba1_attention_and_mamba3_are_the_whole_on_cpu) {
  texts_are_the_whole(hybrid_config({MixerKind::kMamba1, MixerKind::kAttention, MixerKind::kMlp,
                                     MixerKind::kMamba3},
                                    kWidth, 112),
                      {68, 100, 4}, 12, "cpu");
}
TEST(LmHybridPrompts, of_mamba2_attention_and_mamba3_are_the_whole_on_cpu) {
  texts_are_the_whole(hybrid_config({MixerKind::kMamba2, MixerKind::kMlp, MixerKind::kMamba3,
                                     MixerKind::kAttention},
                                    kWidth, 112),
                      {1, 99, 64}, 12, "cpu");
}
// Has two kinds of attention, by options of single layers, and a mixture of experts.
nn::LanguageModelConfig jamba_prompts(std::int64_t width, std::int64_t most) {
  nn::LanguageModelConfig config =
      hybrid_config(nn::mixer_schedule("mamba1 moe attention mlp attention", 5), width, most);
  config.mamba.b_c_dt_norm = config.mamba.b_c_dt_norm_weights = true;
  config.attention.rope = false;
  config.moe = {.experts = 3, .top_k = 2, .width = 20};
  config.layer_options = {
      {.first = 4,
       .attention = nn::AttentionLayer{
           .heads = 2,
           .options = {.kv_heads = 1, .max_length = most, .bias = true, .rope_dims = 4}}}};
  return config;
}
TEST(LmHybridPrompts, OfJambaAreTheWholeOnCpu) {
  texts_are_the_whole(jamba_prompts(kWidth, 112), {68, 100, 4}, 12, "cpu");
}
TEST(LmHybridPrompts, OfJambaAreTheWholeOnWebGpu) {
  texts_are_the_whole(jamba_prompts(16, 23), {9, 20, 4}, 3, "webgpu");
}
// Each use of a shared block has its own keys and values.
nn::LanguageModelConfig zamba2_prompts(std::int64_t width, std::int64_t most) {
  nn::LanguageModelConfig config =
      hybrid_config(nn::mixer_schedule("mamba2_shared mamba2 mamba2_shared", 5), width, most);
  config.shared = {.blocks = 2,
                   .heads = 4,
                   .attention = {.kv_heads = 2, .max_length = most},
                   .mlp_width = 20,
                   .adapter_rank = 3,
                   .attention_adapters = true};
  return config;
}
TEST(LmHybridPrompts, OfZamba2AreTheWholeOnCpu) {
  texts_are_the_whole(zamba2_prompts(kWidth, 112), {68, 100, 4}, 12, "cpu");
}
TEST(LmHybridPrompts, OfZamba2AreTheWholeOnWebGpu) {
  texts_are_the_whole(zamba2_prompts(16, 23), {9, 20, 4}, 3, "webgpu");
}
nn::LanguageModelConfig gpt2_prompts(std::int64_t width, std::int64_t positions) {
  return nn::gpt2_config(kSyllables, width, 2, 4, positions);
}
// The longest text uses all positions.
TEST(LmHybridPrompts, OfGpt2AreTheWholeOnCpu) {
  texts_are_the_whole(gpt2_prompts(kWidth, 112), {68, 100, 4}, 12, "cpu");
}
TEST(LmHybridPrompts, OfGpt2AreTheWholeOnWebGpu) {
  texts_are_the_whole(gpt2_prompts(16, 23), {9, 20, 4}, 3, "webgpu");
}

TEST(LmHybridPrompts, LearnedPositionsEndByName) {
  const lm::SavedModel model = hybrid_model(gpt2_prompts(16, 6));
  EXPECT_EQ(lm::max_context(model.config), 6);
  const std::string known =
      " tokens; expected at most n_positions = 6, the positions that the "
      "model has learned";
  lm::Decoder decoder(model, {.batch = 2, .device = {.kind = "cpu"}});
  using Texts = std::vector<Syllables>;
  EXPECT_EQ(
      test::message_of([&] { (void)decoder.prefill(Texts{random_tokens(7, kSyllables, 1)}); }),
      "decoder: a text has 7" + known);
  (void)decoder.prefill(Texts{random_tokens(6, kSyllables, 1), random_tokens(5, kSyllables, 2)});
  const Syllables next = {1, 2};
  const std::span<const float> logits = decoder.step(next);
  EXPECT_TRUE(std::isnan(logits[0]));  // beyond n_positions, unlike the second text
  EXPECT_TRUE(std::isfinite(logits[kSyllables]));
  EXPECT_EQ(test::message_of([&] { (void)decoder.step(next); }), "decoder: a text has 7" + known);
  EXPECT_EQ(test::message_of([&] { (void)whole_hybrid(model.config, 7, "cpu"); }),
            "LanguageModel: expected at most n_positions = 6 tokens, got 7");
}

// Smaller, because software drivers are slow to compile kernels.
TEST(LmHybridPrompts, of_mamba1_attention_and_mamba3_are_the_whole_on_webgpu) {
  texts_are_the_whole(
      hybrid_config({MixerKind::kMamba1, MixerKind::kAttention, MixerKind::kMamba3}, 16, 24),
      {9, 20, 4}, 3, "webgpu");
}

}  // namespace
}  // namespace tensorgrad::testing
