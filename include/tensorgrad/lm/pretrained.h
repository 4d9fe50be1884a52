// SPDX-License-Identifier: MIT
// Published checkpoints of Mamba and Mamba-2, as written by Hugging Face's transformers and by
// mamba-ssm of state-spaces.
#pragma once

#include "tensorgrad/lm/checkpoint.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Options of load_pretrained().
struct PretrainedOptions {
  bool tokenizer = true;  ///< Reads the tokenizer in the folder, if there is one.
};

/// Reads a model from a folder with these files:
/// - config.json, with `model_type` "mamba" or "mamba2" of transformers, or with `ssm_cfg` of
///   mamba-ssm,
/// - model.safetensors, or the shards named in model.safetensors.index.json,
/// - optionally tokenizer.json, or vocab.json and merges.txt.
///
/// F16 and BF16 weights become f32, exactly. If config.json ties the output layer to
/// the embedding, the output layer is left out; throws IoError if the two differ. If mamba-ssm pads
/// the vocabulary, `vocab_size` includes the padding.
///
/// Throws IoError naming the file and the field if a file is missing or malformed, if the
/// architecture or a setting is not supported, or if the weights exist only as pytorch_model.bin.
/// In that case the message explains how to convert them. Throws UserError as check_weights().
SavedModel load_pretrained(const FolderSource& folder, const PretrainedOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
