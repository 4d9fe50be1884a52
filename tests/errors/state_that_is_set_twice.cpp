// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(state_that_is_set_twice, UserError) {
  compiled([](const Net&, In in) {
    const Tensor count = state("count", {});
    set_state("count", count + 1.0);
    set_state("count", count + 2.0);  // error: set_state: 'count' is set twice
    return sum(in["x"]);
  });
}

}  // namespace tensorgrad::testing
