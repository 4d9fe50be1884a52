// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/pretrained.h"
#include "base/path.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "lm/pretrained_config.h"
#include "lm/pretrained_names.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/data/weights.h"
#include "tensorgrad/error.h"
#include "tensorgrad/lm/gguf.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLongestJson = 64 << 20;
constexpr const char* kWeightsFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kGenerationFile = "generation_config.json";
constexpr const char* kEmbeddingName = "backbone.embedding.weight";
constexpr const char* kHeadName = "lm_head.weight";

nlohmann::json json_file(const FileSource& source) {
  const std::vector<std::byte> bytes = read_file(source, kLongestJson);
  return python_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, source.name());
}

std::map<std::string, HostTensor> read_shard(const FileSource& source) {
  return read_weights(source);
}

// Returns the names of the files in an index, without duplicates. Throws IoError if one is not in
// the same folder.
std::set<std::string> shards_of(const FileSource& index) {
  const nlohmann::json root = json_file(index);
  const auto fail = [&](const std::string& what) { throw IoError(index.name() + ": " + what); };
  const auto found = root.is_object() ? root.find("weight_map") : root.end();
  if (!root.is_object() || found == root.end() || !found->is_object() || found->empty())
    fail("weight_map: expected an object of tensor names and files");
  std::set<std::string> names;
  for (const auto& [tensor, file] : found->items()) {
    if (!file.is_string()) fail("weight_map." + tensor + ": expected the name of a file");
    const std::string name = file.get<std::string>();
    if (name.empty() || name == ".." || utf8_path(name).filename() != utf8_path(name)) {
      fail("weight_map." + tensor + ": expected the name of a file in the same folder");
    }
    names.insert(name);
  }
  return names;
}

std::map<std::string, HostTensor> sharded_weights(const FolderSource& folder) {
  std::map<std::string, HostTensor> weights;
  for (const std::string& name : shards_of(folder.file(kIndexFile))) {
    const FileSource shard = folder.file(name);
    for (auto& [tensor, values] : read_shard(shard)) {
      if (weights.emplace(tensor, std::move(values)).second) continue;
      throw IoError(shard.name() + ": the tensor " + tensor + " is also in another shard");
    }
  }
  return weights;
}

std::map<std::string, HostTensor> weights_in(const FolderSource& folder) {
  if (folder.has_file(kWeightsFile)) return read_shard(folder.file(kWeightsFile));
  if (folder.has_file(kIndexFile)) return sharded_weights(folder);
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!folder.has_file(name)) continue;
    throw IoError(folder.file(name).name() +
                  ": pickled weights are not supported because loading them can run code; convert "
                  "them with Python's torch and safetensors: save_file({k: v.clone() for k, v in "
                  "torch.load('pytorch_model.bin').items()}, 'model.safetensors')");
  }
  throw IoError(folder.name() + ": contains neither " + kWeightsFile + " nor " + kIndexFile);
}

void check_finite(const std::map<std::string, HostTensor>& weights, const std::string& folder) {
  for (const auto& [name, tensor] : weights) {
    if (tensor.dtype != f32) continue;
    const std::span<const float> values = tensor.float_span();
    const auto bad =
        std::find_if_not(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
    if (bad == values.end()) continue;
    throw IoError(folder + ": " + name + ": element " + std::to_string(bad - values.begin()) +
                  " is " + (std::isnan(*bad) ? "NaN" : "infinite") + "; expected finite weights");
  }
}

void check_head(const nn::LanguageModelConfig& config,
                const std::map<std::string, HostTensor>& weights, const std::string& folder) {
  if (config.tie_embeddings || weights.contains(kHeadName)) return;
  throw IoError(folder + ": " + kHeadName +
                " is missing: the weights are those of a base model without an output layer, and "
                "config.json does not tie it to the embedding");
}

// Removes the weight of an output layer that is tied to the embedding. Throws IoError if the two
// differ.
void drop_tied_head(const nn::LanguageModelConfig& config,
                    std::map<std::string, HostTensor>& weights, const std::string& folder) {
  const auto head = weights.find(kHeadName);
  if (!config.tie_embeddings || head == weights.end()) return;
  const auto table = weights.find(kEmbeddingName);
  if (table != weights.end() &&
      (table->second.shape != head->second.shape || table->second.bytes != head->second.bytes)) {
    throw IoError(folder + ": " + kHeadName +
                  " differs from the embedding, but config.json ties the two");
  }
  weights.erase(head);
}

// Returns true if the folder has a tokenizer. Throws IoError if it has only tokenizer files that
// are not supported.
bool has_tokenizer(const FolderSource& folder) {
  if (folder.has_file("vocab.json") && folder.has_file("merges.txt")) return true;
  for (const char* name : {"tokenizer.json", "tokenizer.model", "vocab.txt"}) {
    if (folder.has_file(name)) return true;
  }
  for (const char* name : {"spiece.model", "sentencepiece.bpe.model", "tekken.json"}) {
    if (!folder.has_file(name)) continue;
    throw IoError(folder.file(name).name() +
                  ": this kind of tokenizer file is not supported; convert it with Python's "
                  "transformers, AutoTokenizer.from_pretrained(folder).save_pretrained(folder), "
                  "which writes a tokenizer.json, or import the model without a tokenizer");
  }
  return false;
}

std::vector<std::int32_t> eos_ids_of(const FolderSource& folder, const nlohmann::json& config,
                                     const std::string& config_file, std::int64_t vocab_size) {
  if (folder.has_file(kGenerationFile)) {
    const FileSource generation = folder.file(kGenerationFile);
    std::vector<std::int32_t> ids =
        eos_ids_in(json_file(generation), generation.name(), vocab_size);
    if (!ids.empty()) return ids;
  }
  return eos_ids_in(config, config_file, vocab_size);
}

}  // namespace

SavedModel load_pretrained(const FolderSource& folder, const PretrainedOptions& options) {
  std::error_code ignored;
  const fs::path path = utf8_path(folder.name());
  if (folder.name().ends_with(".gguf") && fs::is_regular_file(path, ignored))
    return load_gguf(folder.name(), options);
  if (!folder.exists()) {
    throw IoError(folder.name() + (fs::exists(path, ignored)
                                       ? ": is a file; expected the folder that holds config.json "
                                         "and the weights"
                                       : ": no such folder"));
  }
  const FileSource config = folder.file("config.json");
  const nlohmann::json root = json_file(config);
  SavedModel model{pretrained_config(root, config.name()), {}};
  if (options.context > 0) {
    for (nn::CausalAttention::Options* each :
         {&model.config.attention, &model.config.shared.attention})
      each->max_length = std::min(each->max_length, options.context);
  }
  model.weights = weights_here(weights_in(folder), model.config, folder.name());
  drop_tied_head(model.config, model.weights, folder.name());
  check_head(model.config, model.weights, folder.name());
  check_weights(model.config, model.weights, folder.name());
  check_finite(model.weights, folder.name());
  model.eos_ids = eos_ids_of(folder, root, config.name(), model.config.vocab_size);
  if (options.tokenizer && has_tokenizer(folder)) model.tokenizer = Tokenizer::from_folder(folder);
  return model;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
