// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loader_from_a_place_beyond_an_epoch, UserError) {
  DataLoader loader(6, [](std::int64_t) { return NamedTensors{}; }, {.batch = 3});
  // error: data loader: batch 2 of epoch 0 is out of range: an epoch has 2 batches
  loader.load_state({0, 2, 0});
}

}  // namespace tensorgrad::testing
