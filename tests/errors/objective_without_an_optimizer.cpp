// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objective_without_an_optimizer, UserError) {
  auto objectives = two_objectives();
  objectives[1].options.optimizer = {};
  compiled(objectives);  // error: compile: an optimizer is required
}

}  // namespace tensorgrad::testing
