// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(state_with_a_name_of_the_optimizer, UserError) {
  compiled([](const Net&, In in) {
    // error: state: a name must not be empty or begin with '_' or 'optim.', got 'optim.exp_avg'
    return sum(in["x"]) + state("optim.exp_avg", {});
  });
}

}  // namespace tensorgrad::testing
