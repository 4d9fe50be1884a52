// SPDX-License-Identifier: MIT
// The configuration of a published checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tensorgrad/nn/language_model.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

// JSON as Python writes it: Infinity outside of strings is null. IoError: see read_json().
nlohmann::json python_json(std::string_view text, const std::string& file);

// What the config.json of transformers or of mamba-ssm says. IoError, naming the field: one that is
// missing, of another type or out of range, or that asks for what nn::LanguageModel is not.
nn::LanguageModelConfig pretrained_config(const nlohmann::json& root, const std::string& file);

// The eos_token_id of a config.json or generation_config.json: null, an id or a list. Leaves out
// ids that are not in the vocabulary, which cannot be generated: transformers keeps the defaults of
// large models in the configurations of small ones. IoError: another type.
std::vector<std::int32_t> eos_ids_in(const nlohmann::json& root, const std::string& file,
                                     std::int64_t vocab_size);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
