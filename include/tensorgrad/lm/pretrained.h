// SPDX-License-Identifier: MIT
// Checkpoints of Mamba, Mamba-2, Llama, GPT-2, Bamba, Jamba and Zamba2 in the folders of Hugging
// Face's transformers, and those of mamba-ssm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tensorgrad/lm/checkpoint.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Options of load_pretrained().
struct PretrainedOptions {
  bool tokenizer = true;  ///< Reads the tokenizer in the folder, if there is one.

  /// Limit of the context length of attention layers, for which Decoder reserves memory; 0: that of
  /// the configuration.
  std::int64_t context = 0;
};

/// Reads a model from a folder with these files:
/// - config.json, with `model_type` "mamba", "falcon_mamba", "mamba2", "llama", "mistral", "gpt2",
///   "bamba", "jamba" or "zamba2" of transformers, or with `ssm_cfg` of mamba-ssm,
/// - model.safetensors, or the shards named in model.safetensors.index.json,
/// - optionally tokenizer.json, or vocab.json and merges.txt,
/// - optionally generation_config.json, whose `eos_token_id` goes before that of config.json.
///
/// The weights can be those of a base model (MambaModel) whose output layer is the embedding. F16
/// and BF16 weights become f32, exactly. If config.json ties the output layer to the embedding, the
/// output layer is left out; throws IoError if the two differ. If mamba-ssm pads the vocabulary,
/// `vocab_size` includes the padding.
///
/// A path that ends with ".gguf" and is a file is read by load_gguf().
///
/// Throws IoError naming the file and the field if a file is missing or malformed, if the
/// architecture or a setting is not supported, if a weight is not finite, or if the folder is a
/// file. Of Zamba2, `use_long_context`, a `time_step_limit` and activations other than GELU are not
/// supported. Also throws IoError if the weights exist only as pytorch_model.bin, or the tokenizer
/// only as tekken.json or another unsupported file; the message explains how to convert them.
/// Throws the errors of check_weights().
SavedModel load_pretrained(const FolderSource& folder, const PretrainedOptions& options = {});

/// Returns the files of a folder from which transformers loads the model, by their names:
/// config.json, generation_config.json, model.safetensors, and those of the tokenizer. Quantized
/// weights become f32. The class of the model depends on its layers:
/// - Mamba: MambaForCausalLM or, with MambaOptions::b_c_dt_norm, FalconMambaForCausalLM.
/// - Mamba-2: Mamba2ForCausalLM.
/// - Attention and MLPs in turn: LlamaForCausalLM or, with the options of nn::gpt2_config(),
///   GPT2LMHeadModel.
/// - An MLP after each Mamba-2 layer or attention that rotates half of each head: BambaForCausalLM.
/// - Mamba with MambaOptions::b_c_dt_norm_weights, attention without positions, MLPs and mixtures
///   of experts: JambaForCausalLM.
/// - Mamba-2 with shared transformer blocks: Zamba2ForCausalLM.
///
/// Throws UserError if the model has other layers, or options that those models lack: zero-order
/// hold, a bias of `x_proj`, another epsilon in the norms of a mixer, other options in some layers,
/// or experts of another width than the MLPs. Also throws UserError if Bamba or Jamba would have no
/// attention layer, or the layers of Jamba have no period. For Zamba2, throws UserError if the
/// output layer is not tied to the embedding, dt has an upper bound, or the shared blocks have no
/// adapters. Throws the errors of check_weights().
std::map<std::string, std::vector<std::byte>> pretrained_files(const SavedModel& model);

/// Writes pretrained_files() into a folder, which is created if it does not exist. Each file is
/// replaced atomically. Throws the errors of pretrained_files(), and IoError if a file cannot be
/// written.
void save_pretrained(const std::string& folder, const SavedModel& model);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
