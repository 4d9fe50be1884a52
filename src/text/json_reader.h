// SPDX-License-Identifier: MIT
// Streaming reader for the JSON of tokenizers. Vocabulary and merges, the largest parts, are read
// directly into lists. Memory use is thus a small multiple of the file size. Everything else
// becomes a tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/owned_json.h"

namespace tensorgrad::text {

struct TokenizerJson {
  OwnedJson<nlohmann::json> tree;  // without model.vocab and model.merges
  std::vector<std::pair<std::string, std::uint64_t>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;
  bool has_vocab = false, has_merges = false;
};

enum class JsonFile {
  kTokenizer,  // a tokenizer.json
  kVocab,      // a vocab.json: `vocab` is the whole file
  kOther       // everything becomes a tree
};

// Throws IoError with the byte position if the text is not JSON, a key is duplicate, nesting is too
// deep, or a vocabulary or merges are malformed.
TokenizerJson read_json(std::string_view json, std::string_view file, JsonFile kind);

}  // namespace tensorgrad::text
