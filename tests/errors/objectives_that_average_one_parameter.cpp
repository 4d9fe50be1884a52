// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objectives_that_average_one_parameter, UserError) {
  auto objectives = two_objectives();
  for (auto& each : objectives) each.options.ema_decay = 0.5;
  objectives[1].params = {};
  // error: ema_decay: the objectives 'w' and 'b' both train 'fc.weight': only one may average it
  compiled(objectives);
}

}  // namespace tensorgrad::testing
