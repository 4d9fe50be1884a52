// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objectives_that_are_none, UserError) {
  // error: compile: expected at least one objective, got none
  compiled(std::vector<ObjectiveSpec<Net>>{});
}

}  // namespace tensorgrad::testing
