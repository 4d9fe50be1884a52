// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loader_that_was_moved, UserError) {
  DataLoader loader(3, [](std::int64_t) { return NamedTensors{}; }, {});
  const DataLoader other = std::move(loader);
  EXPECT_EQ(other.size(), 3);
  loader.next();  // error: DataLoader: used after it was moved from
}

}  // namespace tensorgrad::testing
