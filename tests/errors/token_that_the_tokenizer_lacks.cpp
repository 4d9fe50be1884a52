// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(token_that_the_tokenizer_lacks, UserError) {
  const Tokenizer tokenizer = Tokenizer::bytes();
  // throws: tokenizer: no token has the id 256; ids are below 256
  static_cast<void>(tokenizer.decode(std::vector<std::int32_t>{65, 256}));
}

}  // namespace tensorgrad::testing
