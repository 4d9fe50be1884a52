// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(lone_objective_without_a_name, UserError) {
  std::vector<ObjectiveSpec<Net>> objectives = two_objectives();
  objectives.resize(1);
  objectives[0].name = "";
  // error: compile: objective names may only contain letters, digits, '_' and '-', got ''
  compiled(objectives);
}

}  // namespace tensorgrad::testing
