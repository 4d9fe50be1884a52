// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loader_with_a_batch_above_its_samples, UserError) {
  const auto get = [](std::int64_t) { return NamedTensors{}; };
  // error: data loader: a batch of 4 is larger than the 3 samples
  DataLoader(3, get, {.batch = 4});
}

}  // namespace tensorgrad::testing
