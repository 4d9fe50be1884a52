// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objective_with_a_seed_of_its_own, UserError) {
  auto objectives = two_objectives();
  objectives[1].options.seed = 3;
  // error: objective 'b': seed, device, memory_budget and initial must be set in TrainerOptions
  compiled(objectives);
}

}  // namespace tensorgrad::testing
