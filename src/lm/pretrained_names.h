// SPDX-License-Identifier: MIT
// Weights by the names of transformers and by those here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tensorgrad/nn/language_model.h"
#include "tensorgrad/train/inputs.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

using Weights = std::map<std::string, HostTensor>;

// The architectures of transformers that nn::LanguageModel can be.
enum class Architecture : std::uint8_t { kMamba, kMamba2, kLlama, kGpt2, kBamba, kJamba };

// Returns the architecture of a model, if transformers has one for it.
std::optional<Architecture> architecture_of(const nn::LanguageModelConfig& config);

// Returns the number of heads of keys and values, which is `heads` if it is not set.
std::int64_t kv_heads_of(const nn::LanguageModelConfig& config);

// By the names here. `config` is that of the weights. A base model (MambaModel) has no head and no
// prefix. IoError, beginning with `where`: a part of a joined matrix is missing or does not fit.
Weights weights_here(Weights weights, const nn::LanguageModelConfig& config,
                     const std::string& where);
// By the names of transformers, for a model that has an architecture there.
Weights weights_there(const Weights& weights, const nn::LanguageModelConfig& config);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
