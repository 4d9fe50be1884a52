// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/pretrained.h"

#include <filesystem>
#include <set>

#include "lm/pretrained_config.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/data/weights.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLongestJson = 64 << 20;
constexpr const char* kWeightsFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kEmbeddingName = "backbone.embedding.weight";
constexpr const char* kHeadName = "lm_head.weight";

nlohmann::json json_file(const FileSource& source) {
  const std::vector<std::byte> bytes = read_file(source, kLongestJson);
  return python_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, source.name());
}

std::map<std::string, HostTensor> read_shard(const FileSource& source) {
  return read_weights(source,
                      {.names = {{"backbone.embeddings.weight", kEmbeddingName}}, .partial = true});
}

// The files that the index names, each once. A name is that of a file in the folder.
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
    if (name.empty() || name == ".." || fs::path(name).filename() != fs::path(name)) {
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

// A head that is the embedding has no weight of its own here; files may have it all the same.
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

bool has_tokenizer(const FolderSource& folder) {
  return folder.has_file("tokenizer.json") ||
         (folder.has_file("vocab.json") && folder.has_file("merges.txt"));
}

}  // namespace

SavedModel load_pretrained(const FolderSource& folder, const PretrainedOptions& options) {
  if (!folder.exists()) throw IoError(folder.name() + ": no such folder");
  const FileSource config = folder.file("config.json");
  SavedModel model{pretrained_config(json_file(config), config.name()), weights_in(folder)};
  drop_tied_head(model.config, model.weights, folder.name());
  check_weights(model.config, model.weights, folder.name());
  if (options.tokenizer && has_tokenizer(folder)) model.tokenizer = Tokenizer::from_folder(folder);
  return model;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
