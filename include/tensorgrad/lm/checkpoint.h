// SPDX-License-Identifier: MIT
// Files of language models: safetensors files of the weights, with the configuration and optionally
// the tokenizer in the metadata. docs/formats.md describes the format.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/data/tokenizer.h"
#include "tensorgrad/nn/language_model.h"
#include "tensorgrad/train/inputs.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Metadata key of the configuration, as written by to_json().
inline constexpr const char* kConfigKey = "tensorgrad.lm.config";

/// Metadata key of the tokenizer, the text of a tokenizer.json.
inline constexpr const char* kTokenizerKey = "tensorgrad.lm.tokenizer";

/// Metadata key of the bos, eos and pad tokens, as written by tokenizer_config_json().
inline constexpr const char* kTokenizerConfigKey = "tensorgrad.lm.tokenizer_config";

/// Metadata key of SavedModel::eos_ids, as a JSON list.
inline constexpr const char* kEosIdsKey = "tensorgrad.lm.eos_ids";

/// Returns a configuration as one line of JSON. It contains the options of the kinds of layers in
/// the model. Throws UserError if a required size is missing or `layers` does not have `n_layer`
/// elements.
std::string to_json(const nn::LanguageModelConfig& config, Loc loc = Loc::current());

/// Returns the configuration of a text made by to_json(). `name` stands for the file in errors.
/// Throws IoError naming the field if the text is not JSON, or if a field is missing, unknown, out
/// of range or of the wrong type. `layers` may also be a schedule (see nn::mixer_schedule()), if
/// there is an `n_layer`. If `partial` is set, fields that are missing have their defaults.
nn::LanguageModelConfig config_from_json(std::string_view json,
                                         std::string_view name = "config.json",
                                         bool partial = false);

/// Language model on the host: configuration, weights and tokenizer.
struct SavedModel {
  nn::LanguageModelConfig config;             ///< Sizes and kinds of the layers.
  std::map<std::string, HostTensor> weights;  ///< By the parameter names of nn::LanguageModel.

  /// Tokenizer of the model; nullopt if there is none. A Generator needs it.
  std::optional<Tokenizer> tokenizer = std::nullopt;

  /// Ids that end generated text. Empty: the tokenizer's eos token.
  std::vector<std::int32_t> eos_ids = {};
};

/// Throws UserError naming the tensor if the weights are not those of a model with this
/// configuration. `name` stands for the file in errors. Allocates no more than the weights justify,
/// so that configurations from untrusted files can be checked.
void check_weights(const nn::LanguageModelConfig& config,
                   const std::map<std::string, HostTensor>& weights, std::string_view name);

/// Writes a model to a file, atomically. Throws the errors of check_weights(), and UserError if the
/// tokenizer or `eos_ids` have ids beyond the model's vocabulary. Throws IoError if the file cannot
/// be written.
void save_model(const FileSink& sink, const SavedModel& model);

/// Reads a model written by save_model(). F16 and BF16 weights become f32, except quantized
/// weights. The tokenizer is nullopt if the file has none. Throws IoError if the file cannot be
/// read, its configuration is missing or malformed, or its tokenizer or `eos_ids` are malformed. A
/// checkpoint of TrainerBase::save() has no configuration. Throws UserError like save_model().
SavedModel load_model(const FileSource& source);

/// Returns the bos, eos and pad tokens as the JSON of Hugging Face's tokenizer_config.json.
/// Tokenizer::from_file() reads it next to a tokenizer.json.
std::string tokenizer_config_json(const Tokenizer& tokenizer);

/// Returns the configuration in the metadata of a file. `name` stands for the file in errors.
/// Throws IoError if it is missing or malformed.
nn::LanguageModelConfig read_config(const StoredFile& file, std::string_view name);

/// Returns the tokenizer in the metadata of a file, or nullopt if there is none. `name` stands for
/// the file in errors. Throws IoError if it is malformed.
std::optional<Tokenizer> read_tokenizer(const StoredFile& file, std::string_view name);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
