// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(tokenizer_vocabulary_smaller_than_the_bytes, UserError) {
  const std::string_view text = "some text";
  // throws: tokenizer training: vocab_size must be from 256 (all bytes and special tokens) to
  // 16777216, got 100
  Tokenizer::train({&text, 1}, {.vocab_size = 100});
}

}  // namespace tensorgrad::testing
