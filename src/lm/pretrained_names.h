// SPDX-License-Identifier: MIT
// Conversion of weights between the names of transformers and those of tensorgrad.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tensorgrad/nn/language_model.h"
#include "tensorgrad/train/inputs.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

using Weights = std::map<std::string, HostTensor>;

// Architectures of transformers that nn::LanguageModel supports.
enum class Architecture : std::uint8_t { kMamba, kMamba2, kLlama, kGpt2, kBamba, kJamba, kZamba2 };

// Returns the architecture of a model, or nullopt if transformers has none for it.
std::optional<Architecture> architecture_of(const nn::LanguageModelConfig& config);

// Returns the number of key-value heads, which is `heads` if it is not set.
std::int64_t kv_heads_of(const nn::LanguageModelConfig& config);

// Returns weights of transformers by the names of tensorgrad. `config` is the configuration of the
// model. A base model (MambaModel) has no output layer, and its names have no prefix. Throws
// IoError that begins with `where` if a tensor that must be joined or transposed is missing or has
// a shape that does not fit.
Weights weights_here(Weights weights, const nn::LanguageModelConfig& config,
                     const std::string& where);
// Returns weights by the names of transformers. The model must have an architecture; see
// architecture_of().
Weights weights_there(const Weights& weights, const nn::LanguageModelConfig& config);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
