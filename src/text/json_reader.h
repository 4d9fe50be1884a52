// SPDX-License-Identifier: MIT
// Reads the JSON of tokenizers as a stream: vocabulary and merges, which are most of it, go
// straight into lists, so that a file costs a small multiple of its size; all else becomes a tree.
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
  kOther       // all of it is a tree
};

// IoError with the byte: no JSON, a key that is there twice, nested too deeply, a vocabulary or
// merges of another form.
TokenizerJson read_json(std::string_view json, std::string_view file, JsonFile kind);

}  // namespace tensorgrad::text
