// SPDX-License-Identifier: MIT
// Published checkpoints of Mamba and Mamba-2: folders as Hugging Face's transformers and
// state-spaces' mamba-ssm write them.
#pragma once

#include <string>

#include "tensorgrad/lm/checkpoint.h"

namespace tensorgrad::lm {

struct PretrainedOptions {
  bool tokenizer = true;  // read the one in the folder, if there is one
};

// The model in a folder with config.json (`model_type` mamba or mamba2 of transformers, or
// mamba-ssm's with `ssm_cfg`) and model.safetensors, or the shards that
// model.safetensors.index.json names; with tokenizer.json, or vocab.json and merges.txt, the
// tokenizer. Weights of F16 and BF16 become f32, exactly; a head that is the embedding's copy is
// left out. vocab_size is that of the embedding: where mamba-ssm pads it, with the padding. Throws
// IoError, naming the file and the field: missing or malformed files, weights that are only there
// pickled (pytorch_model.bin; the message says how to convert them), architectures that are none of
// these; UserError as check_weights().
SavedModel load_pretrained(const std::string& folder, const PretrainedOptions& options = {});

}  // namespace tensorgrad::lm
