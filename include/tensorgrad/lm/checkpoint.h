// SPDX-License-Identifier: MIT
// Language models in files: a safetensors file with the weights, and in its metadata the
// configuration as JSON and, where it is given, the tokenizer. docs/formats.md describes them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tensorgrad/train/inputs.h"
#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/nn/language_model.h"
#include "tensorgrad/data/tokenizer.h"

namespace tensorgrad::lm {

// Where they lie in the metadata.
inline constexpr const char* kConfigKey = "tensorgrad.lm.config";
inline constexpr const char* kTokenizerKey = "tensorgrad.lm.tokenizer";
inline constexpr const char* kTokenizerConfigKey = "tensorgrad.lm.tokenizer_config";

// All that the model is made of, in one line; of kinds of layers those that it has. Throws
// UserError as nn::LanguageModel does.
std::string to_json(const nn::LanguageModelConfig& config, Loc loc = Loc::current());
// The other way. `name` stands for the file in messages. IoError, naming the field: no JSON, a
// field that is missing, not known, of another type or out of range.
nn::LanguageModelConfig config_from_json(std::string_view json, std::string_view name = "config.json");

struct SavedModel {
  nn::LanguageModelConfig config;
  std::map<std::string, HostTensor> weights;  // by the names of nn::LanguageModel's parameters
  std::optional<Tokenizer> tokenizer = std::nullopt;
};

// Throws UserError where the weights are not those of a model of the configuration: `name` stands
// for the file, and the message names the tensor. Nothing is made that is larger than the weights.
void check_weights(const nn::LanguageModelConfig& config, const std::map<std::string, HostTensor>& weights,
                   std::string_view name);

// Writes the file atomically. Throws UserError as check_weights(), and for a tokenizer with more
// ids than the model's vocab_size; IoError: a path that cannot be written.
void save_model(const std::string& path, const SavedModel& model);
// Reads it; weights of F16 and BF16 become f32. A file that a Trainer saved has no configuration.
// IoError: no such file, no configuration in it, one that is not as config_from_json() takes it, a
// tokenizer that is none; UserError as save_model().
SavedModel load_model(const std::string& path);

// Which tokens are bos, eos and pad, as Hugging Face's tokenizer_config.json says it, which
// Tokenizer::from_file() reads beside a tokenizer.json.
std::string tokenizer_config_json(const Tokenizer& tokenizer);

// What load_model() and other readers of such files begin with: the metadata alone. IoError, naming
// `name`.
nn::LanguageModelConfig read_config(const StoredFile& file, std::string_view name);
std::optional<Tokenizer> read_tokenizer(const StoredFile& file, std::string_view name);

}  // namespace tensorgrad::lm
