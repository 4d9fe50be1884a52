// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objective_without_a_loss, UserError) {
  auto objectives = two_objectives();
  objectives[1].loss = nullptr;
  compiled(objectives);  // error: compile: the objective 'b' has no loss
}

}  // namespace tensorgrad::testing
