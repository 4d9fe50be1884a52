// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/pretrained.h"

#include <filesystem>
#include <set>

#include "lm/pretrained_config.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/data/weights.h"
#include "tensorgrad/error.h"

namespace tensorgrad::lm {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLongestJson = 64 << 20;
constexpr const char* kEmbeddingName = "backbone.embedding.weight";
constexpr const char* kHeadName = "lm_head.weight";

nlohmann::json json_file(const fs::path& path) {
  const std::vector<std::byte> bytes = read_file(path.string(), kLongestJson);
  return python_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

std::map<std::string, HostTensor> read_shard(const fs::path& path) {
  return read_weights(path.string(),
                      {.names = {{"backbone.embeddings.weight", kEmbeddingName}}, .partial = true});
}

// The files that the index names, each once. A name is that of a file in the folder.
std::set<std::string> shards_of(const fs::path& index) {
  const nlohmann::json root = json_file(index);
  const auto fail = [&](const std::string& what) { throw IoError(index.string() + ": " + what); };
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

std::map<std::string, HostTensor> sharded_weights(const fs::path& folder, const fs::path& index) {
  std::map<std::string, HostTensor> weights;
  for (const std::string& name : shards_of(index)) {
    const fs::path path = folder / name;
    for (auto& [tensor, values] : read_shard(path)) {
      if (weights.emplace(tensor, std::move(values)).second) continue;
      throw IoError(path.string() + ": the tensor " + tensor + " is also in another shard");
    }
  }
  return weights;
}

std::map<std::string, HostTensor> weights_in(const fs::path& folder) {
  const fs::path whole = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  if (fs::exists(whole)) return read_shard(whole);
  if (fs::exists(index)) return sharded_weights(folder, index);
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!fs::exists(folder / name)) continue;
    throw IoError((folder / name).string() +
                  ": pickled weights are not supported because loading them can run code; convert "
                  "them with Python's torch and safetensors: save_file({k: v.clone() for k, v in "
                  "torch.load('pytorch_model.bin').items()}, 'model.safetensors')");
  }
  throw IoError(folder.string() + ": contains neither model.safetensors nor " +
                index.filename().string());
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

bool has_tokenizer(const fs::path& folder) {
  return fs::exists(folder / "tokenizer.json") ||
         (fs::exists(folder / "vocab.json") && fs::exists(folder / "merges.txt"));
}

}  // namespace

SavedModel load_pretrained(const std::string& folder, const PretrainedOptions& options) {
  const fs::path root(folder);
  if (!fs::is_directory(root)) throw IoError(folder + ": no such folder");
  const std::string file = (root / "config.json").string();
  SavedModel model{pretrained_config(json_file(file), file), weights_in(root)};
  drop_tied_head(model.config, model.weights, folder);
  check_weights(model.config, model.weights, folder);
  if (options.tokenizer && has_tokenizer(root)) model.tokenizer = Tokenizer::from_file(folder);
  return model;
}

}  // namespace tensorgrad::lm
