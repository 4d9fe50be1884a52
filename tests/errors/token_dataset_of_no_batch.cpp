// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(token_dataset_of_no_batch, UserError) {
  const TokenSequence tokens(std::vector<std::int32_t>(5));
  const TokenDatasetOptions options{.length = 2, .tail = TokenTail::kWrap, .batch = 0};
  // error: TokenDataset: batch must be at least 1, got 0
  const TokenDataset data(tokens, options);
}

}  // namespace tensorgrad::testing
