// SPDX-License-Identifier: MIT
// Writing of folders of transformers.
#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/path.h"
#include "lm/pretrained_names.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"
#include "tensorgrad/lm/pretrained.h"
#include "tensorgrad/lm/quantize.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

using FolderJson = nlohmann::ordered_json;

[[noreturn]] void refuse_export(const std::string& what) {
  throw UserError("pretrained_files: " + what);
}

// Writes the fields that Mamba and Mamba-2 have in common.
template <class Options>
void state_space_fields(const nn::LanguageModelConfig& config, const Options& o,
                        const char* architecture, const char* type, FolderJson& out) {
  out["architectures"] = {architecture};
  out["model_type"] = type;
  out["num_hidden_layers"] = config.n_layer;
  out["layer_norm_epsilon"] = config.norm_epsilon;
  out["state_size"] = o.d_state;
  out["conv_kernel"] = o.d_conv;
  out["expand"] = o.expand;
  out["use_bias"] = o.bias;
  out["use_conv_bias"] = o.conv_bias;
}

void mamba_fields(const nn::LanguageModelConfig& config, FolderJson& out) {
  const nn::MambaOptions& o = config.mamba;
  if (o.discretization != Discretization::kEuler)
    refuse_export("transformers has no Mamba layers with zero-order hold");
  if (o.x_bias) refuse_export("transformers has no bias of x_proj in Mamba layers");
  state_space_fields(config, o, o.b_c_dt_norm ? "FalconMambaForCausalLM" : "MambaForCausalLM",
                     o.b_c_dt_norm ? "falcon_mamba" : "mamba", out);
  if (o.b_c_dt_norm) out["mixer_rms_eps"] = o.norm_epsilon;
  out["intermediate_size"] = o.expand * config.d_model;
  out["time_step_rank"] = o.dt_rank > 0 ? FolderJson(o.dt_rank) : FolderJson("auto");
}

// Writes the bounds of dt, if there are any.
void limit_fields(const nn::Mamba2Options& o, FolderJson& out) {
  constexpr double kNoLimit = 1e30;  // JSON has no infinity
  if (o.dt_limit_min > 0 || o.dt_limit_max > 0)
    out["time_step_limit"] = {o.dt_limit_min, o.dt_limit_max > 0 ? o.dt_limit_max : kNoLimit};
}

void mamba2_fields(const nn::LanguageModelConfig& config, FolderJson& out) {
  const nn::Mamba2Options& o = config.mamba2;
  if (o.norm_epsilon != config.norm_epsilon)
    refuse_export("transformers has one epsilon for all norms of Mamba-2");
  state_space_fields(config, o, "Mamba2ForCausalLM", "mamba2", out);
  out["head_dim"] = o.head_dim;
  out["num_heads"] = o.expand * config.d_model / o.head_dim;
  out["n_groups"] = o.groups;
  out["chunk_size"] = o.chunk;
  limit_fields(o, out);
}

bool has_kind(const nn::LanguageModelConfig& config, nn::MixerKind kind) {
  return std::find(config.layers.begin(), config.layers.end(), kind) != config.layers.end();
}

// Writes the fields that Llama, Bamba and Jamba have in common.
void pair_fields(const nn::LanguageModelConfig& config, const char* architecture, const char* type,
                 FolderJson& out) {
  if (!has_kind(config, nn::MixerKind::kAttention))
    refuse_export("transformers has no Bamba and Jamba models without attention layers");
  out["architectures"] = {architecture};
  out["model_type"] = type;
  out["num_hidden_layers"] = config.n_layer / 2;
  out["rms_norm_eps"] = config.norm_epsilon;
  out["intermediate_size"] = config.mlp_width;
  out["num_attention_heads"] = config.heads;
  out["num_key_value_heads"] = kv_heads_of(config);
  out["max_position_embeddings"] = config.attention.max_length;
}

// Writes the fields that Llama and Bamba share, but not Jamba.
void rope_fields(const nn::LanguageModelConfig& config, FolderJson& out) {
  out["rope_theta"] = config.attention.rope_base;
  out["rope_parameters"] = {{"rope_theta", config.attention.rope_base}, {"rope_type", "default"}};
  out["attention_bias"] = config.attention.bias;
  out["mlp_bias"] = config.mlp_bias;
}

void llama_fields(const nn::LanguageModelConfig& config, FolderJson& out) {
  pair_fields(config, "LlamaForCausalLM", "llama", out);
  out["head_dim"] = config.d_model / config.heads;
  rope_fields(config, out);
}

void bamba_fields(const nn::LanguageModelConfig& config, FolderJson& out) {
  const nn::Mamba2Options& o = config.mamba2;
  const bool scans = has_kind(config, nn::MixerKind::kMamba2);
  if (scans && o.norm_epsilon != config.norm_epsilon)
    refuse_export("transformers has one epsilon for all norms of Bamba");
  pair_fields(config, "BambaForCausalLM", "bamba", out);
  rope_fields(config, out);
  out["rope_parameters"]["partial_rotary_factor"] = 0.5;
  std::vector<std::int64_t> attention;
  for (std::int64_t i = 0; i < config.n_layer / 2; ++i) {
    if (config.layers[static_cast<std::size_t>(2 * i)] == nn::MixerKind::kAttention)
      attention.push_back(i);
  }
  out["attn_layer_indices"] = attention;
  out["mamba_n_heads"] = scans ? o.expand * config.d_model / o.head_dim : 1;
  out["mamba_d_head"] = scans ? FolderJson(o.head_dim) : FolderJson("auto");
  out["mamba_n_groups"] = o.groups;
  out["mamba_d_state"] = o.d_state;
  out["mamba_d_conv"] = o.d_conv;
  out["mamba_expand"] = o.expand;
  out["mamba_chunk_size"] = o.chunk;
  out["mamba_conv_bias"] = o.conv_bias;
  out["mamba_proj_bias"] = o.bias;
  limit_fields(o, out);
}

// Writes the period and the offset of the layers for which `is` is true. Throws UserError if they
// are not periodic.
template <class Is>
void every_fields(const char* what, std::int64_t layers, const Is& is, FolderJson& out) {
  std::int64_t first = 0;
  while (first < layers && !is(first)) ++first;
  std::int64_t second = first + 1;
  while (second < layers && !is(second)) ++second;
  const std::int64_t period = second < layers ? second - first : std::max(first + 1, layers);
  bool fits = first < period;
  for (std::int64_t i = 0; i < layers; ++i) fits = fits && is(i) == (i % period == first);
  out[std::string(what) + "_layer_period"] = period;
  out[std::string(what) + "_layer_offset"] = first;
  if (fits) return;
  refuse_export(
      "transformers has Jamba models only with a period of attention layers and one of "
      "mixtures of experts");
}

void jamba_fields(const nn::LanguageModelConfig& config, FolderJson& out) {
  const nn::MambaOptions& o = config.mamba;
  const bool mixes = has_kind(config, nn::MixerKind::kMoe);
  if (has_kind(config, nn::MixerKind::kMamba1)) {
    if (o.norm_epsilon != config.norm_epsilon)
      refuse_export("transformers has one epsilon for all norms of Jamba");
    if (o.discretization != Discretization::kEuler)
      refuse_export("transformers has no Mamba layers with zero-order hold");
    if (o.x_bias) refuse_export("transformers has no bias of x_proj in Mamba layers");
  }
  if (mixes && config.moe.experts == 1) refuse_export("transformers has no mixture of one expert");
  pair_fields(config, "JambaForCausalLM", "jamba", out);
  const auto is = [&](int block, nn::MixerKind kind) {
    return [&config, block, kind](std::int64_t layer) {
      return config.layers[static_cast<std::size_t>(2 * layer + block)] == kind;
    };
  };
  const std::int64_t layers = config.n_layer / 2;
  every_fields("attn", layers, is(0, nn::MixerKind::kAttention), out);
  every_fields("expert", layers, is(1, nn::MixerKind::kMoe), out);
  out["num_experts"] = mixes ? config.moe.experts : 1;
  out["num_experts_per_tok"] = mixes ? config.moe.top_k : 1;
  out["mamba_d_state"] = o.d_state;
  out["mamba_d_conv"] = o.d_conv;
  out["mamba_expand"] = o.expand;
  out["mamba_dt_rank"] = o.dt_rank > 0 ? FolderJson(o.dt_rank) : FolderJson("auto");
  out["mamba_conv_bias"] = o.conv_bias;
  out["mamba_proj_bias"] = o.bias;
}

void zamba2_fields(const nn::LanguageModelConfig& config, FolderJson& out) {
  const nn::Mamba2Options& o = config.mamba2;
  const nn::SharedTransformer::Options& shared = config.shared;
  if (o.norm_epsilon != 1e-5)
    refuse_export("transformers has an epsilon of 1e-5 in the Mamba-2 layers of Zamba2");
  if (o.dt_limit_max > 0)
    refuse_export("transformers has no upper bound of dt in the Mamba-2 layers of Zamba2");
  if (!config.tie_embeddings) {
    refuse_export(
        "transformers shares blocks of Zamba2 only if the output layer is tied to the embedding");
  }
  out["architectures"] = {"Zamba2ForCausalLM"};
  out["model_type"] = "zamba2";
  out["num_hidden_layers"] = config.n_layer;
  out["layers_block_type"] = FolderJson::array();
  out["hybrid_layer_ids"] = FolderJson::array();
  for (std::int64_t i = 0; i < config.n_layer; ++i) {
    const bool hybrid = config.layers[static_cast<std::size_t>(i)] == nn::MixerKind::kMamba2Shared;
    out["layers_block_type"].push_back(hybrid ? "hybrid" : "mamba");
    if (hybrid) out["hybrid_layer_ids"].push_back(i);
  }
  out["rms_norm_eps"] = config.norm_epsilon;
  out["mamba_d_state"] = o.d_state;
  out["mamba_d_conv"] = o.d_conv;
  out["mamba_expand"] = o.expand;
  out["mamba_ngroups"] = o.groups;
  out["n_mamba_heads"] = o.expand * config.d_model / o.head_dim;
  out["chunk_size"] = o.chunk;
  // transformers takes the logarithm of this lower bound of dt.
  constexpr double kNoBound = 1e-30;
  out["time_step_min"] = o.dt_limit_min > 0 ? o.dt_limit_min : kNoBound;
  out["add_bias_linear"] = o.bias;
  out["num_mem_blocks"] = shared.blocks;
  out["num_attention_heads"] = shared.heads;
  out["num_key_value_heads"] =
      shared.attention.kv_heads == 0 ? shared.heads : shared.attention.kv_heads;
  out["max_position_embeddings"] = shared.attention.max_length;
  out["use_mem_rope"] = shared.attention.rope;
  out["rope_theta"] = shared.attention.rope_base;
  out["rope_parameters"] = {{"rope_theta", shared.attention.rope_base}, {"rope_type", "default"}};
  out["intermediate_size"] = shared.mlp_width > 0 ? shared.mlp_width : 4 * config.d_model;
  out["adapter_rank"] = shared.adapter_rank;
  out["use_shared_mlp_adapter"] = true;
  out["use_shared_attention_adapter"] = shared.attention_adapters;
}

// Returns the width of all MLPs and experts. Throws UserError if it is not the same in all.
std::int64_t pair_width(const SavedModel& model) {
  std::int64_t width = 0;
  for (std::size_t i = 1; i < model.config.layers.size(); i += 2) {
    const std::string name = "backbone.layers." + std::to_string(i) + ".mixer.fc2.weight";
    std::int64_t own = model.weights.at(name).shape.back();
    if (model.config.layers[i] == nn::MixerKind::kMoe) own /= model.config.moe.experts;
    if (width != 0 && own != width)
      refuse_export("transformers has one width for all MLPs and experts");
    width = own;
  }
  return width;
}

void gpt2_fields(const nn::LanguageModelConfig& config, std::int64_t mlp_width, FolderJson& out) {
  out["architectures"] = {"GPT2LMHeadModel"};
  out["model_type"] = "gpt2";
  out["n_layer"] = config.n_layer / 2;
  out["n_embd"] = config.d_model;
  out["n_head"] = config.heads;
  out["n_positions"] = config.n_positions;
  out["n_inner"] = mlp_width;
  out["activation_function"] = "gelu_new";
  out["layer_norm_epsilon"] = config.norm_epsilon;
}

std::vector<std::byte> json_bytes(const FolderJson& json) {
  const std::string text = json.dump(2, ' ', false, FolderJson::error_handler_t::replace) + "\n";
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> text_bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Returns the ids of bos, eos and pad, by the names of transformers.
FolderJson marks_of(const SavedModel& model) {
  FolderJson marks = FolderJson::object();
  const auto add = [&](const char* key, std::optional<std::int32_t> id) {
    if (id) marks[key] = *id;
  };
  if (model.tokenizer) {
    add("bos_token_id", model.tokenizer->bos_id());
    add("eos_token_id", model.tokenizer->eos_id());
    add("pad_token_id", model.tokenizer->pad_id());
  }
  if (model.eos_ids.size() == 1) marks["eos_token_id"] = model.eos_ids[0];
  if (model.eos_ids.size() > 1) marks["eos_token_id"] = model.eos_ids;
  // If a field is missing, the model classes of transformers use default ids.
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    if (!marks.contains(key)) marks[key] = nullptr;
  }
  return marks;
}

}  // namespace

std::map<std::string, std::vector<std::byte>> pretrained_files(const SavedModel& given) {
  const SavedModel model = quantize(given, nn::WeightFormat::kF32);
  nn::LanguageModelConfig config = model.config;
  if (config.layers.empty()) config.layers.assign(static_cast<std::size_t>(config.n_layer), {});
  const std::optional<Architecture> kind = architecture_of(config);
  if (!kind) {
    refuse_export(
        "transformers has no model with these layers and options; expected only Mamba, only "
        "Mamba-2, mixers and MLPs in turn as in Llama, GPT-2, Bamba or Jamba, or Mamba-2 with "
        "shared blocks as in Zamba2, with the same options in all layers");
  }
  FolderJson out;
  const bool zamba2 = kind == Architecture::kZamba2;
  if (kind != Architecture::kMamba && kind != Architecture::kMamba2 && !zamba2)
    config.mlp_width = config.moe.width = pair_width(model);
  switch (*kind) {
    case Architecture::kMamba: mamba_fields(config, out); break;
    case Architecture::kMamba2: mamba2_fields(config, out); break;
    case Architecture::kLlama: llama_fields(config, out); break;
    case Architecture::kBamba: bamba_fields(config, out); break;
    case Architecture::kJamba: jamba_fields(config, out); break;
    case Architecture::kZamba2: zamba2_fields(config, out); break;
    case Architecture::kGpt2: gpt2_fields(config, config.mlp_width, out); break;
  }
  out["vocab_size"] = config.vocab_size;
  if (kind != Architecture::kGpt2) {
    out["hidden_size"] = config.d_model;
    out["hidden_act"] = zamba2 ? "gelu" : "silu";
  }
  out["tie_word_embeddings"] = config.tie_embeddings;
  out["torch_dtype"] = "float32";
  const FolderJson marks = marks_of(model);
  out.update(marks);
  StoredFile weights;
  weights.metadata["format"] = "pt";
  for (auto& [name, tensor] : weights_there(model.weights, config))
    weights.tensors[name] = {"F32", tensor.shape, tensor.bytes};
  std::map<std::string, std::vector<std::byte>> files;
  write_safetensors({files["model.safetensors"], "model.safetensors"}, weights);
  files["config.json"] = json_bytes(out);
  files["generation_config.json"] = json_bytes(marks);
  if (model.tokenizer) {
    files["tokenizer.json"] = text_bytes(model.tokenizer->to_json());
    FolderJson tokenizer = FolderJson::parse(tokenizer_config_json(*model.tokenizer));
    tokenizer["tokenizer_class"] = "PreTrainedTokenizerFast";
    files["tokenizer_config.json"] = json_bytes(tokenizer);
  }
  return files;
}

void save_pretrained(const std::string& folder, const SavedModel& model) {
  namespace fs = std::filesystem;
  const auto files = pretrained_files(model);
  std::error_code error;
  fs::create_directories(utf8_path(folder), error);
  if (error) throw IoError(folder + ": cannot be created: " + error.message());
  for (const auto& [name, bytes] : files)
    write_file_atomically(utf8_text(utf8_path(folder) / utf8_path(name)), bytes);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
