// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(chunk_that_is_not_there, UserError) {
  const std::vector<std::int32_t> tokens(9);
  const TokenChunks chunks(tokens, 4);
  // error: chunk 2 is out of range; expected 0 to 1
  static_cast<void>(chunks.at(2));
}

}  // namespace tensorgrad::testing
