// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(threads_beyond_the_most, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{},
                               .device = {.kind = "cpu", .threads = 1000}};
  // error: device: expected 1 to 256 threads, or 0 for one per core, got 1000
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
