// SPDX-License-Identifier: MIT
// Folders of transformers.
#include <filesystem>

#include <nlohmann/json.hpp>

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

// What the configurations of Mamba and Mamba-2 have in common.
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

void mamba2_fields(const nn::LanguageModelConfig& config, FolderJson& out) {
  const nn::Mamba2Options& o = config.mamba2;
  if (o.norm_epsilon != config.norm_epsilon)
    refuse_export("transformers has one epsilon for all norms of Mamba-2");
  state_space_fields(config, o, "Mamba2ForCausalLM", "mamba2", out);
  out["head_dim"] = o.head_dim;
  out["num_heads"] = o.expand * config.d_model / o.head_dim;
  out["n_groups"] = o.groups;
  out["chunk_size"] = o.chunk;
  constexpr double kNoLimit = 1e30;  // JSON has no infinity
  if (o.dt_limit_min > 0 || o.dt_limit_max > 0)
    out["time_step_limit"] = {o.dt_limit_min, o.dt_limit_max > 0 ? o.dt_limit_max : kNoLimit};
}

void llama_fields(const nn::LanguageModelConfig& config, std::int64_t mlp_width, FolderJson& out) {
  out["architectures"] = {"LlamaForCausalLM"};
  out["model_type"] = "llama";
  out["num_hidden_layers"] = config.n_layer / 2;
  out["rms_norm_eps"] = config.norm_epsilon;
  out["intermediate_size"] = mlp_width;
  out["num_attention_heads"] = config.heads;
  out["num_key_value_heads"] =
      config.attention.kv_heads > 0 ? config.attention.kv_heads : config.heads;
  out["head_dim"] = config.d_model / config.heads;
  out["max_position_embeddings"] = config.attention.max_length;
  out["rope_theta"] = config.attention.rope_base;
  out["rope_parameters"] = {{"rope_theta", config.attention.rope_base}, {"rope_type", "default"}};
  out["attention_bias"] = false;
  out["mlp_bias"] = false;
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

// bos, eos and pad of the model, by the names of transformers.
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
  // The classes have ids of their own where nothing is said.
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
        "Mamba-2, or attention and MLPs in turn as in Llama or GPT-2");
  }
  FolderJson out;
  const auto mlp_width = [&] {
    return model.weights.at("backbone.layers.1.mixer.fc2.weight").shape.back();
  };
  switch (*kind) {
    case Architecture::kMamba: mamba_fields(config, out); break;
    case Architecture::kMamba2: mamba2_fields(config, out); break;
    case Architecture::kLlama:
      config.mlp_width = mlp_width();
      llama_fields(config, config.mlp_width, out);
      break;
    case Architecture::kGpt2: gpt2_fields(config, mlp_width(), out); break;
  }
  out["vocab_size"] = config.vocab_size;
  if (kind != Architecture::kGpt2) {
    out["hidden_size"] = config.d_model;
    out["hidden_act"] = "silu";
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
  fs::create_directories(folder, error);
  if (error) throw IoError(folder + ": cannot be created: " + error.message());
  for (const auto& [name, bytes] : files)
    write_file_atomically((fs::path(folder) / name).string(), bytes);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
