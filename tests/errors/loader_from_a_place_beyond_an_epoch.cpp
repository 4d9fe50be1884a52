// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loader_from_a_place_beyond_an_epoch, UserError) {
  DataLoader loader(6, [](std::int64_t) { return Outputs{}; }, {.batch = 3});
  // error: data loader: there is no batch 2 in epoch 0: an epoch has 2
  loader.load_state({0, 2, 0});
}

}  // namespace tensorgrad::testing
