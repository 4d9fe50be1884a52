// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(scalar_with_two_initial_values, UserError) {
  compiled([](const Net&, In in) {
    const Tensor beta = scalar("beta", 0.5);
    // error: scalar: 'beta' already has the initial value 0.5, got 0.25
    return sum(in["x"]) * beta + scalar("beta", 0.25);
  });
}

}  // namespace tensorgrad::testing
