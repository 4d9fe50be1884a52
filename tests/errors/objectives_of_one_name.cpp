// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objectives_of_one_name, UserError) {
  auto objectives = two_objectives();
  objectives[1].name = "w";
  compiled(objectives);  // error: compile: two objectives are named 'w'
}

}  // namespace tensorgrad::testing
