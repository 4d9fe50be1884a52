// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objective_that_is_not_there, UserError) {
  auto trainer = compiled(two_objectives());
  static_cast<void>(trainer["a"]);  // error: no objective named 'a'; available: w, b
}

}  // namespace tensorgrad::testing
