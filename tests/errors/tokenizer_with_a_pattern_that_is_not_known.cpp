// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(tokenizer_with_a_pattern_that_is_not_known, IoError) {
  const std::string json = R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "[a-z]+"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "use_regex": false}]}})";
  // throws: tokenizer.json: pre_tokenizer.pretokenizers[0].pattern.Regex: the expression "[a-z]+"
  // is not supported; expected that of GPT-2, cl100k (GPT-4, Llama 3), Qwen2 or o200k
  Tokenizer::from_json(json);
}

}  // namespace tensorgrad::testing
