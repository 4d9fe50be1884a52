// SPDX-License-Identifier: MIT
// Small language models and texts for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

inline nn::LanguageModelConfig small_mamba(std::int64_t symbols, std::vector<nn::MixerKind> layers,
                                           std::int64_t max_length) {
  nn::LanguageModelConfig config{.vocab_size = symbols, .d_model = 12, .n_layer = 0};
  config.n_layer = static_cast<std::int64_t>(layers.size());
  config.layers = std::move(layers);
  config.mamba.d_state = 5;
  config.mamba2 = {.d_state = 6, .head_dim = 8, .groups = 1, .chunk = 4};
  config.mamba3 = {.d_state = 6, .head_dim = 8, .ranks = 2, .chunk = 4};
  config.heads = 2;
  config.attention.max_length = max_length;
  return config;
}

// Returns a model with one layer of each kind.
inline nn::LanguageModelConfig mixed_mamba(std::int64_t symbols, std::int64_t max_length) {
  return small_mamba(symbols,
                     {nn::MixerKind::kMamba1, nn::MixerKind::kMlp, nn::MixerKind::kMamba2,
                      nn::MixerKind::kAttention, nn::MixerKind::kMamba3},
                     max_length);
}

inline std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t symbols,
                                               unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (std::int32_t& token : tokens)
    token = static_cast<std::int32_t>(random() % static_cast<unsigned long>(symbols));
  return tokens;
}

struct Trained {
  std::vector<float> losses;
  std::map<std::string, HostTensor> params;
};

// Trains on two texts of 20 tokens per step, with clipping and AdamW.
inline Trained trained(const nn::LanguageModelConfig& config, unsigned steps,
                       const DeviceOptions& device) {
  constexpr std::int64_t kBatch = 2, kLength = 20;
  auto trainer = compile(
      nn::LanguageModel(config),
      [](const nn::LanguageModel& net, const Inputs& in) {
        return cross_entropy(net(in["tokens"]), in["next"]);
      },
      {.inputs = {{"tokens", {kBatch, kLength}, i32}, {"next", {kBatch, kLength}, i32}},
       // If a gradient is nearly 0, rounding decides its sign. This epsilon makes that harmless.
       .optimizer = optim::AdamW{.lr = 1e-2, .eps = 1e-3},
       .groups = {nn::LanguageModel::no_weight_decay()},
       .clip_grad_norm = 0.1,
       .seed = 5,
       .device = device});
  const auto text = [&](unsigned seed) {
    return random_tokens(kBatch * kLength, config.vocab_size, seed);
  };
  Trained result;
  for (unsigned step = 0; step < steps; ++step) {
    result.losses.push_back(
        trainer.step({{"tokens", text(2 * step)}, {"next", text(2 * step + 1)}}).loss);
  }
  result.params = trainer.download_params();
  return result;
}

inline void expect_trained_alike(const Trained& got, const Trained& want) {
  for (std::size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], 1e-5) << "step " << i;
  ASSERT_EQ(got.params.size(), want.params.size());
  for (const auto& [name, tensor] : want.params) {
    const std::vector<float> a = got.params.at(name).floats(), b = tensor.floats();
    for (std::size_t i = 0; i < b.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(b[i]))) << name << ' ' << i;
  }
}

}  // namespace tensorgrad::testing
