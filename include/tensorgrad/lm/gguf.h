// SPDX-License-Identifier: MIT
// Language models in GGUF files, the format of llama.cpp.
#pragma once

#include "tensorgrad/data/gguf.h"
#include "tensorgrad/lm/checkpoint.h"
#include "tensorgrad/lm/pretrained.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Reads a model of the architectures "llama", "gpt2", "mamba" (also Falcon-Mamba) or "mamba2".
/// Quantized weights become f32. The tokenizer can be byte-level BPE ("gpt2") or SentencePiece's
/// BPE ("llama").
///
/// Throws the errors of read_gguf(). Also throws IoError naming the key or the tensor if the
/// architecture, a setting or the tokenizer is not supported, something is missing, a shape differs
/// or a weight is not finite. Throws the errors of check_weights().
SavedModel load_gguf(const FileSource& source, const PretrainedOptions& options = {});

/// Returns the content of a GGUF file with which llama.cpp computes the same logits. Layers of
/// Mamba become "mamba", layers of Mamba-2 "mamba2", and attention and MLPs in turn "llama" or,
/// with the options of nn::gpt2_config(), "gpt2". Matrices are written as F32, F16 or BF16 if the
/// model is in that format. Those of int8 become Q8_0 and those of int4 Q4_0 with the same
/// integers; their scales are rounded to f16. A matrix is written as F32 if its rows are not a
/// multiple of 32 elements or f16 does not hold a scale.
///
/// Throws UserError if llama.cpp has no such model or no such tokenizer, or if there are more than
/// three `eos_ids`; the message explains what differs. A model without a tokenizer can always be
/// written. Throws the errors of check_weights().
GgufFile gguf_file(const SavedModel& model);

/// Writes gguf_file() to a file, atomically. Throws the errors of gguf_file() and write_gguf().
void save_gguf(const FileSink& sink, const SavedModel& model);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
