// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(norm_of_a_power_not_there, UserError) {
  compiled([](const Net&, In in) {
    // error: norm: p must be 1, 2 or infinity, got 3
    return sum(norm(in["x"], 3));
  });
}

}  // namespace tensorgrad::testing
