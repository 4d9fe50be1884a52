// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(tokenizer_that_lacks_a_byte, UserError) {
  const Tokenizer tokenizer = Tokenizer::from_json(
      R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}})");
  // throws: tokenizer: the vocabulary has neither a token for byte 0x62 nor an unknown token, in
  // "ab"
  static_cast<void>(tokenizer.encode("ab"));
}

}  // namespace tensorgrad::testing
