// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objectives_that_are_none, UserError) {
  // error: compile: at least one objective expected, got none
  compiled(std::vector<ObjectiveSpec<Net>>{});
}

}  // namespace tensorgrad::testing
