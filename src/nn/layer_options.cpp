// SPDX-License-Identifier: MIT
#include "nn/layer_options.h"

#include <string>
#include <utility>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {
namespace {

bool is_for(const LayerOptions& entry, std::int64_t layer) {
  if (entry.period <= 0 || layer < entry.first) return layer == entry.first;
  return (layer - entry.first) % entry.period == 0;
}

template <class Value>
void replace(Value& value, const std::optional<Value>& given) {
  if (given) value = *given;
}

}  // namespace

LanguageModelConfig layer_config(const LanguageModelConfig& config, std::int64_t layer, Loc loc) {
  if (layer < 0 || layer >= config.n_layer) {
    throw UserError("layer_config: expected a layer from 0 to " +
                        std::to_string(config.n_layer - 1) + ", got " + std::to_string(layer),
                    loc);
  }
  LanguageModelConfig made = config;
  made.layer_options.clear();
  for (const LayerOptions& entry : config.layer_options) {
    if (!is_for(entry, layer)) continue;
    replace(made.mamba, entry.mamba);
    replace(made.mamba2, entry.mamba2);
    replace(made.mamba3, entry.mamba3);
    replace(made.moe, entry.moe);
    if (entry.attention) {
      made.heads = entry.attention->heads;
      made.attention = entry.attention->options;
    }
    if (entry.mlp) {
      made.mlp = entry.mlp->kind;
      made.mlp_width = entry.mlp->width;
      made.mlp_bias = entry.mlp->bias;
    }
  }
  return made;
}

void check_layer_options(const LanguageModelConfig& config, Loc loc) {
  for (std::size_t i = 0; i < config.layer_options.size(); ++i) {
    const LayerOptions& entry = config.layer_options[i];
    const auto fail = [&](const std::string& what) {
      throw UserError("LanguageModel: layer_options[" + std::to_string(i) + "]: " + what, loc);
    };
    if (entry.first < 0 || entry.first >= config.n_layer) {
      fail("first: expected a layer from 0 to " + std::to_string(config.n_layer - 1) + ", got " +
           std::to_string(entry.first));
    }
    if (entry.period < 0) fail("period: expected 0 or more, got " + std::to_string(entry.period));
    const auto has = [&](MixerKind kind) {
      for (std::int64_t layer = entry.first; layer < config.n_layer; ++layer) {
        if (is_for(entry, layer) && config.layers[static_cast<std::size_t>(layer)] == kind)
          return true;
      }
      return false;
    };
    const auto demand = [&](bool given, bool used, const char* what) {
      if (given && !used)
        fail(std::string("has options of ") + what + ", but no layer of it is one");
    };
    demand(entry.mamba.has_value(), has(MixerKind::kMamba1), "mamba1");
    demand(entry.mamba2.has_value(), has(MixerKind::kMamba2) || has(MixerKind::kMamba2Shared),
           "mamba2");
    demand(entry.mamba3.has_value(), has(MixerKind::kMamba3), "mamba3");
    demand(entry.attention.has_value(), has(MixerKind::kAttention), "attention");
    demand(entry.mlp.has_value(), has(MixerKind::kMlp), "mlp");
    demand(entry.moe.has_value(), has(MixerKind::kMoe), "moe");
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
