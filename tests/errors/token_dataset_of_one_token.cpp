// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(token_dataset_of_one_token, UserError) {
  const TokenSequence tokens(std::vector<std::int32_t>(1));
  // error: TokenDataset: expected at least 2 tokens for examples of length 4, got 1
  const TokenDataset data(tokens, {.length = 4, .tail = TokenTail::kMask});
}

}  // namespace tensorgrad::testing
