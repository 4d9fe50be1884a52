// SPDX-License-Identifier: MIT
// Shared by the tests of tokenizers: access to files of fixtures/ and to results of other
// tokenizers.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/source_path.h"
#include "tensorgrad/data/tokenizer.h"

namespace tensorgrad::test {

using Ids = std::vector<std::int32_t>;

inline std::string fixture_path(const std::string& name) {
  return source_path("tests/unit/text/fixtures/" + name);
}

inline std::string fixture_text(const std::string& name) {
  std::ifstream in(fixture_path(name), std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

// cases.json: strings, and what make_fixtures.py computed from them for each kind of tokenizer.
struct GoldenCases {
  GoldenCases() : all(nlohmann::json::parse(fixture_text("cases.json"))), texts(all.at("texts")) {}
  [[nodiscard]] Ids ids(const std::string& kind, std::size_t i) const {
    return all.at("kinds").at(kind).at("ids").at(i).get<Ids>();
  }
  // Returns the text after encoding and decoding without special tokens, or nullopt if the fixture
  // has no result.
  [[nodiscard]] std::optional<std::string> decoded(const std::string& kind, std::size_t i) const {
    const auto& found = all.at("kinds").at(kind);
    if (found.contains("decoded")) {
      const auto& result = found.at("decoded").at(i);
      return result.is_null() ? std::nullopt : std::optional(result.get<std::string>());
    }
    std::string text = texts[i];
    for (const std::string special : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
      for (std::size_t at = text.find(special); at != std::string::npos; at = text.find(special)) {
        text.erase(at, special.size());
      }
    }
    return text;
  }

  nlohmann::json all;
  std::vector<std::string> texts;
};

inline const GoldenCases& golden_cases() {
  static const GoldenCases cases;
  return cases;
}

// Returns a small tokenizer.json for tests that break it: a few letters, some merges, an added
// token.
inline nlohmann::ordered_json small_tokenizer_json() {
  return nlohmann::ordered_json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 6, "content": "<s>", "single_word": false, "lstrip": false,
                      "rstrip": false, "normalized": false, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                      "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null,
              "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": false,
              "byte_fallback": false, "ignore_merges": false,
              "vocab": {"a": 0, "b": 1, "#": 2, "ab": 3, "##": 4, "aba": 5},
              "merges": ["a b", "# #", "ab a"]}})");
}

}  // namespace tensorgrad::test
