// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(window_that_is_not_there, UserError) {
  const std::vector<std::int32_t> tokens(5);
  const TokenWindows windows(tokens, 3, 2);
  // error: there is no window 2: 0 to 1 expected
  EXPECT_TRUE(windows.at(2).empty());
}

}  // namespace tensorgrad::testing
