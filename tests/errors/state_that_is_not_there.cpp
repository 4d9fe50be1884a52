// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(state_that_is_not_there, UserError) {
  compiled([](const Net&, In in) {
    set_state("count", sum(in["x"]));  // error: set_state: unknown state 'count'
    return sum(in["x"]);
  });
}

}  // namespace tensorgrad::testing
