// SPDX-License-Identifier: MIT
// Configurations of published checkpoints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tensorgrad/nn/language_model.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

// Parses JSON as written by Python. Infinity outside of strings becomes null. Throws IoError as
// read_json().
nlohmann::json python_json(std::string_view text, const std::string& file);

// Returns the configuration in a config.json of transformers or mamba-ssm. Throws IoError naming
// the field if it is missing, of another type or out of range, or if nn::LanguageModel does not
// support its value.
nn::LanguageModelConfig pretrained_config(const nlohmann::json& root, const std::string& file);

// Returns the ids in the eos_token_id of a config.json or generation_config.json, which is null, an
// id or a list. Leaves out ids beyond the vocabulary, which cannot be generated: transformers keeps
// the defaults of large models in the configurations of small ones. Throws IoError if the field has
// another type.
std::vector<std::int32_t> eos_ids_in(const nlohmann::json& root, const std::string& file,
                                     std::int64_t vocab_size);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
