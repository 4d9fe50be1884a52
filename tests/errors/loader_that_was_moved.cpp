// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loader_that_was_moved, UserError) {
  DataLoader loader(3, [](std::int64_t) { return Outputs{}; }, {});
  const DataLoader other = std::move(loader);
  EXPECT_EQ(other.size(), 3);
  loader.next();  // error: DataLoader: it was moved from, so that it has nothing any more
}

}  // namespace tensorgrad::testing
