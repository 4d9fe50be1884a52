// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objective_with_a_name_of_two_words, UserError) {
  auto objectives = two_objectives();
  objectives[1].name = "the bias";
  // error: compile: objective names may only contain letters, digits, '_' and '-', got 'the bias'
  compiled(objectives);
}

}  // namespace tensorgrad::testing
