// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(token_example_out_of_range, UserError) {
  const TokenDataset data(TokenSequence(std::vector<std::int32_t>(9)),
                          {.length = 4, .tail = TokenTail::kMask});
  // error: TokenDataset: example 2 is out of range; expected 0 to 1
  static_cast<void>(data.at(2));
}

}  // namespace tensorgrad::testing
