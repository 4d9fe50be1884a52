// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(averages_that_are_not_kept, UserError) {
  Example e;
  // error: attach: the trainer keeps no averages: ema_decay is not set
  e.trainer.attach([](const Net& net, In in) { return net.fc(in["x"]); },
                   {.inputs = {{"x", {1, 3}}}, .weights = WeightSource::kEma});
}

}  // namespace tensorgrad::testing
