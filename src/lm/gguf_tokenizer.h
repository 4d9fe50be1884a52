// SPDX-License-Identifier: MIT
// Tokenizers in the metadata of GGUF files.
#pragma once

#include <optional>
#include <string>

#include "lm/gguf_fields.h"
#include "tensorgrad/lm/checkpoint.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

// The tokenizer of a file; nothing if it has none. IoError: it is malformed or of a kind that is
// not supported.
std::optional<Tokenizer> gguf_tokenizer(const GgufMetadata& metadata, const std::string& file);

// Adds the tokenizer of a model and the ids that end a text. UserError: llama.cpp has no such
// tokenizer.
void add_gguf_tokenizer(const SavedModel& model, GgufMetadata& metadata);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
