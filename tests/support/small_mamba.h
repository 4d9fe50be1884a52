// SPDX-License-Identifier: MIT
// Language models that are small enough for any test, and texts for them.
#pragma once

#include <random>
#include <utility>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

inline nn::MambaConfig small_mamba(std::int64_t symbols, std::vector<nn::MixerKind> layers,
                                   std::int64_t max_length) {
  nn::MambaConfig config{.vocab_size = symbols, .d_model = 12, .n_layer = 0};
  config.n_layer = static_cast<std::int64_t>(layers.size());
  config.layers = std::move(layers);
  config.mamba.d_state = 5;
  config.mamba2 = {.d_state = 6, .head_dim = 8, .groups = 1, .chunk = 4};
  config.mamba3 = {.d_state = 6, .head_dim = 8, .ranks = 2, .chunk = 4};
  config.heads = 2;
  config.attention.max_length = max_length;
  return config;
}

// A layer of each kind.
inline nn::MambaConfig mixed_mamba(std::int64_t symbols, std::int64_t max_length) {
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

}  // namespace tensorgrad::testing
