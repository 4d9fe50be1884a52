// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/checkpoint.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "base/owned_json.h"
#include "lm/read_json.h"
#include "tensorgrad/data/weights.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

std::int64_t elements_in(const std::map<std::string, HostTensor>& weights) {
  std::int64_t sum = 0;
  // A u32 word holds up to eight quantized elements.
  for (const auto& [name, tensor] : weights)
    sum += numel(tensor.shape) * (tensor.dtype == u32 ? 8 : 1);
  return sum;
}

// Returns a lower bound on the number of elements in a model, without creating it. Counts the
// embeddings, and in each layer the norm, the first matrix of the mixer and, for Mamba-1, A_log. Of
// shared blocks, counts the first matrices, and in each layer the projection and the adapter of the
// MLP.
double least_elements(const nn::LanguageModelConfig& config) {
  const auto width = static_cast<double>(config.d_model);
  double sum = width * static_cast<double>(config.vocab_size + config.n_positions);
  const auto rank = static_cast<double>(config.shared.adapter_rank);
  const double shared_width =
      config.shared.mlp_width > 0 ? static_cast<double>(config.shared.mlp_width) : 4 * width;
  std::int64_t blocks = 0;  // layers that use a shared block so far
  nn::LanguageModelConfig options = config;
  options.layers.clear();  // avoids a copy for each layer
  options.n_layer = static_cast<std::int64_t>(config.layers.size());
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const nn::LanguageModelConfig layer = nn::layer_config(options, static_cast<std::int64_t>(i));
    double inner = 1, each = 0;
    switch (config.layers[i]) {
      case nn::MixerKind::kMamba1:
        inner = 2 * static_cast<double>(layer.mamba.expand) * width;
        each = inner / 2 * static_cast<double>(layer.mamba.d_state);
        break;
      case nn::MixerKind::kMamba2Shared:
        each = width * width + rank * (width + 2 * shared_width);
        if (blocks < config.shared.blocks) sum += 2 * width * 2 * width + 2 * width * shared_width;
        ++blocks;
        [[fallthrough]];
      case nn::MixerKind::kMamba2:
        inner = 2 * static_cast<double>(layer.mamba2.expand) * width;
        break;
      case nn::MixerKind::kMamba3:
        inner = 2 * static_cast<double>(layer.mamba3.expand) * width;
        break;
      case nn::MixerKind::kAttention: inner = width; break;
      case nn::MixerKind::kMlp: inner = static_cast<double>(layer.mlp_width); break;
      case nn::MixerKind::kMoe:
        inner = static_cast<double>(layer.moe.experts) * (1 + static_cast<double>(layer.moe.width));
        break;
    }
    sum += width + width * inner + each;
  }
  return sum;
}

nn::LanguageModel made_model(const nn::LanguageModelConfig& config, const std::string& file) {
  try {
    return nn::LanguageModel(config);
  } catch (Error& error) {
    error.add_context("while building the model of " + file);
    throw;
  }
}

void check_tokenizer(const SavedModel& model, const std::string& path) {
  if (!model.tokenizer || model.tokenizer->vocab_size() <= model.config.vocab_size) return;
  throw UserError(
      path + ": the tokenizer has ids up to " + std::to_string(model.tokenizer->vocab_size() - 1) +
      ", but the model has a vocabulary of " + std::to_string(model.config.vocab_size) + " tokens");
}

void check_eos_ids(const SavedModel& model, const std::string& path) {
  for (const std::int32_t id : model.eos_ids) {
    if (id >= 0 && id < model.config.vocab_size) continue;
    throw UserError(path + ": eos_ids: expected ids from 0 to " +
                    std::to_string(model.config.vocab_size - 1) + ", got " + std::to_string(id));
  }
}

std::vector<std::int32_t> read_eos_ids(const StoredFile& file, const std::string& name) {
  const auto found = file.metadata.find(kEosIdsKey);
  if (found == file.metadata.end()) return {};
  const std::string where = name + ": " + kEosIdsKey;
  const OwnedJson tree(read_json(found->second, where));
  const nlohmann::json& root = *tree;
  std::vector<std::int32_t> ids;
  const auto is_id = [](const nlohmann::json& id) {
    return id.is_number_unsigned() && id.get<std::uint64_t>() <= INT32_MAX;
  };
  if (!root.is_array() || !std::all_of(root.begin(), root.end(), is_id))
    throw IoError(where + ": expected a list of ids");
  for (const nlohmann::json& id : root) ids.push_back(id.get<std::int32_t>());
  return ids;
}

// Sets the bos, eos and pad tokens of a tokenizer from a tokenizer_config.json.
void take_marks(const std::string& json, std::string_view name, Tokenizer& tokenizer) {
  const auto fail = [&](const std::string& what) {
    throw IoError(std::string(name) + ": " + kTokenizerConfigKey + ": " + what);
  };
  const OwnedJson tree(read_json(json, std::string(name) + ": " + kTokenizerConfigKey));
  const nlohmann::json& root = *tree;
  if (!root.is_object()) fail("expected a JSON object");
  const auto take = [&](const char* key, void (Tokenizer::*set)(std::string_view)) {
    const auto found = root.find(key);
    if (found == root.end()) return;
    if (!found->is_string()) fail(std::string(key) + ": expected a string");
    const std::string token = found->get<std::string>();
    if (!tokenizer.token_to_id(token)) fail(std::string(key) + ": the tokenizer has no such token");
    (tokenizer.*set)(token);
  };
  take("bos_token", &Tokenizer::set_bos);
  take("eos_token", &Tokenizer::set_eos);
  take("pad_token", &Tokenizer::set_pad);
}

}  // namespace

std::string tokenizer_config_json(const Tokenizer& tokenizer) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  const auto add = [&](const char* key, std::optional<std::int32_t> id) {
    if (id) out[key] = tokenizer.id_to_token(*id).value_or("");
  };
  add("bos_token", tokenizer.bos_id());
  add("eos_token", tokenizer.eos_id());
  add("pad_token", tokenizer.pad_id());
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void check_weights(const nn::LanguageModelConfig& config,
                   const std::map<std::string, HostTensor>& weights, std::string_view name) {
  const std::string file(name);
  const std::int64_t held = elements_in(weights);
  if (least_elements(config) > static_cast<double>(held)) {
    throw UserError(file + ": a model with this configuration has more parameters than the " +
                    std::to_string(held) + " given");
  }
  const nn::LanguageModel model = made_model(config, file);
  std::set<std::string> known;
  const auto check = [&](const std::string& path, DType dtype, const Shape& shape) {
    const auto at = weights.find(path);
    if (at == weights.end()) throw UserError(file + ": the tensor " + path + " is missing");
    known.insert(path);
    if (at->second.dtype == dtype && at->second.shape == shape) return;
    throw UserError(file + ": " + path + ": expected " + std::string(to_string(dtype)) +
                    to_string(shape) + ", got " + std::string(to_string(at->second.dtype)) +
                    to_string(at->second.shape));
  };
  ParameterVisitor visitor([&](const std::string& path,
                               const Parameter& parameter) { check(path, f32, parameter.shape()); },
                           [&](const std::string& path, const Buffer& buffer) {
                             check(path, buffer.dtype(), buffer.shape());
                           });
  model.visit_fields(visitor);
  for (const auto& [path, tensor] : weights) {
    if (!known.contains(path)) {
      throw UserError(file + ": a model with this configuration has no parameter " + path);
    }
  }
}

void save_model(const FileSink& sink, const SavedModel& model) {
  const std::string& path = sink.name();
  check_weights(model.config, model.weights, path);
  check_tokenizer(model, path);
  check_eos_ids(model, path);
  StoredFile file;
  file.checksums = true;
  for (const auto& [name, tensor] : model.weights) {
    file.tensors[name] = {std::string(stored_dtype(tensor.dtype)), tensor.shape, tensor.bytes};
  }
  file.metadata[kConfigKey] = to_json(model.config);
  if (model.tokenizer) {
    file.metadata[kTokenizerKey] = model.tokenizer->to_json();
    file.metadata[kTokenizerConfigKey] = tokenizer_config_json(*model.tokenizer);
  }
  if (!model.eos_ids.empty()) file.metadata[kEosIdsKey] = nlohmann::json(model.eos_ids).dump();
  write_safetensors(sink, file);
}

nn::LanguageModelConfig read_config(const StoredFile& file, std::string_view name) {
  const auto found = file.metadata.find(kConfigKey);
  if (found == file.metadata.end()) {
    throw IoError(std::string(name) + ": not a language model file: its metadata has no " +
                  kConfigKey);
  }
  return config_from_json(found->second, name);
}

std::optional<Tokenizer> read_tokenizer(const StoredFile& file, std::string_view name) {
  const auto found = file.metadata.find(kTokenizerKey);
  if (found == file.metadata.end()) return std::nullopt;
  Tokenizer made = Tokenizer::from_json(found->second, std::string(name) + ": " + kTokenizerKey);
  const auto config = file.metadata.find(kTokenizerConfigKey);
  if (config != file.metadata.end()) take_marks(config->second, name, made);
  return made;
}

SavedModel load_model(const FileSource& source) {
  const std::string& path = source.name();
  StoredFile file = read_safetensors(source);
  SavedModel model{
      read_config(file, path), {}, read_tokenizer(file, path), read_eos_ids(file, path)};
  // Quantized weights are not converted.
  const auto kept = [&](const std::string& dtype) -> std::optional<DType> {
    if (dtype == "F32") return f32;
    if (dtype == "U32") return u32;
    if (dtype == "F16" && model.config.weight_format == nn::WeightFormat::kF16) return f16;
    return std::nullopt;
  };
  bool plain = true;
  for (auto& [name, tensor] : file.tensors) {
    const std::optional<DType> dtype = kept(tensor.dtype);
    plain = plain && dtype;
    if (plain) model.weights[name] = {*dtype, std::move(tensor.shape), std::move(tensor.data)};
  }
  if (!plain) {
    file.tensors.clear();
    model.weights = read_weights(source);
  }
  check_weights(model.config, model.weights, path);
  check_tokenizer(model, path);
  check_eos_ids(model, path);
  return model;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
