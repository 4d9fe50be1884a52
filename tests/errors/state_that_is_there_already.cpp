// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(state_that_is_there_already, UserError) {
  compiled([](const Net&, In in) {
    state("count", {});
    return sum(in["x"]) + state("count", {});  // error: state: state 'count' already exists
  });
}

}  // namespace tensorgrad::testing
