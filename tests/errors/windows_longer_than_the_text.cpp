// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(windows_longer_than_the_text, UserError) {
  const std::vector<std::int32_t> tokens(5);
  // error: cannot take windows of 6 tokens with stride 1 from 5 tokens
  const TokenWindows windows(tokens, 6);
}

}  // namespace tensorgrad::testing
