// SPDX-License-Identifier: MIT
// The configuration of a published checkpoint.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tensorgrad/nn/language_model.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

// JSON as Python writes it: Infinity outside of strings is null. IoError: see read_json().
nlohmann::json python_json(std::string_view text, const std::string& file);

// What the config.json of transformers or of mamba-ssm says. IoError, naming the field: one that is
// missing, of another type or out of range, or that asks for what nn::LanguageModel is not.
nn::LanguageModelConfig pretrained_config(const nlohmann::json& root, const std::string& file);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
