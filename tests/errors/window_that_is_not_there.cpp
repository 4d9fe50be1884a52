// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(window_that_is_not_there, UserError) {
  const std::vector<std::int32_t> tokens(5);
  const TokenWindows windows(tokens, 3, 2);
  // error: window 2 is out of range; expected 0 to 1
  EXPECT_TRUE(windows.at(2).empty());
}

}  // namespace tensorgrad::testing
