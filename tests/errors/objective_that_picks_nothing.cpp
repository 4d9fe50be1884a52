// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objective_that_picks_nothing, UserError) {
  auto objectives = two_objectives();
  objectives[1].params = "*.biass";
  // error: objective 'b': no parameter matches; available: fc.weight, fc.bias
  compiled(objectives);
}

}  // namespace tensorgrad::testing
