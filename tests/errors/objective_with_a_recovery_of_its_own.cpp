// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objective_with_a_recovery_of_its_own, UserError) {
  auto objectives = two_objectives();
  objectives[1].options.recovery.snapshot_steps = 10;
  compiled(objectives);  // error: objective 'b': recovery must be set in TrainerOptions
}

}  // namespace tensorgrad::testing
