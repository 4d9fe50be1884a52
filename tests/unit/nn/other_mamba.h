// SPDX-License-Identifier: MIT
// Small language models with options that small_mamba.h does not use: grouped heads, bounds of dt,
// a single rank, biases, zero-order hold, norms of B, C and dt, and heavy-tailed decay.
#pragma once

#include <utility>
#include <vector>

#include "support/small_mamba.h"

namespace tensorgrad::testing {

inline nn::LanguageModelConfig other_mamba(std::int64_t symbols, std::vector<nn::MixerKind> layers,
                                           std::int64_t max_length) {
  nn::LanguageModelConfig config = small_mamba(symbols, std::move(layers), max_length);
  config.d_model = 24;
  config.mamba.bias = config.mamba.x_bias = true;
  config.mamba.conv_bias = false;
  config.mamba.discretization = Discretization::kZeroOrderHold;
  config.mamba.b_c_dt_norm = true;
  config.mamba.norm_epsilon = 0.01;
  // Six heads in two groups. The initial dt is log-uniform from 0.001 to 0.1, so that some values
  // are below, some within and some above the bounds.
  config.mamba2 = {.d_state = 6,
                   .head_dim = 8,
                   .groups = 2,
                   .chunk = 4,
                   .bias = true,
                   .conv_bias = false,
                   .dt_limit_min = 0.006,
                   .dt_limit_max = 0.03};
  config.mamba3 = {.d_state = 6, .head_dim = 8, .ranks = 1, .chunk = 4};
  config.mamba3.decay = nn::DecayActivation::kHeavyTail;
  config.heads = 6;
  config.attention.kv_heads = 2;
  config.attention.rope_base = 50;
  return config;
}

}  // namespace tensorgrad::testing
