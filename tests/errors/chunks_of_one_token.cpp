// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(chunks_of_one_token, UserError) {
  const std::vector<std::int32_t> tokens(1);
  // error: cannot make chunks of 4 pairs of a token and its successor from 1 tokens
  const TokenChunks chunks(tokens, 4);
}

}  // namespace tensorgrad::testing
