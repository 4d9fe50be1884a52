// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(tokenizer_of_whole_words, IoError) {
  const std::string json = R"({"model": {"type": "WordLevel", "vocab": {"a": 0}},
                               "pre_tokenizer": {"type": "BertPreTokenizer"}})";
  // throws: tokenizer.json: model.type: "WordLevel" is not supported; expected BPE, Unigram,
  // WordPiece
  Tokenizer::from_json(json);
}

}  // namespace tensorgrad::testing
