// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(token_dataset_of_a_stride_above_the_length, UserError) {
  const TokenSequence tokens(std::vector<std::int32_t>(9));
  const TokenDatasetOptions options{.length = 4, .stride = 5, .tail = TokenTail::kMask};
  // error: TokenDataset: stride must be at most the length, 4, if the tail is masked, got 5
  const TokenDataset data(tokens, options);
}

}  // namespace tensorgrad::testing
