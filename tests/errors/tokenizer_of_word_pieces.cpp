// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(tokenizer_of_word_pieces, IoError) {
  const std::string json = R"({"model": {"type": "WordPiece", "vocab": {"a": 0}},
                               "pre_tokenizer": {"type": "BertPreTokenizer"}})";
  // throws: tokenizer.json: model: is of type WordPiece; expected BPE
  Tokenizer::from_json(json);
}

}  // namespace tensorgrad::testing
