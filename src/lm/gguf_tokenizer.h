// SPDX-License-Identifier: MIT
// Tokenizers in the metadata of GGUF files.
#pragma once

#include <optional>
#include <string>

#include "lm/gguf_fields.h"
#include "tensorgrad/lm/checkpoint.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

// Returns the tokenizer of a file, or nullopt if it has none. Throws IoError if the tokenizer is
// malformed, or of an unsupported kind.
std::optional<Tokenizer> gguf_tokenizer(const GgufMetadata& metadata, const std::string& file);

// Adds the tokenizer of a model and the ids that end a text. Throws UserError if llama.cpp has no
// such tokenizer, or if there are more than three such ids.
void add_gguf_tokenizer(const SavedModel& model, GgufMetadata& metadata);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
