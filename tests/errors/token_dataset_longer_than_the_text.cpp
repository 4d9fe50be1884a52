// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(token_dataset_longer_than_the_text, UserError) {
  const TokenSequence tokens(std::vector<std::int32_t>(5));
  // error: TokenDataset: expected at least 6 tokens for examples of length 5, got 5
  const TokenDataset data(tokens, {.length = 5});
}

}  // namespace tensorgrad::testing
