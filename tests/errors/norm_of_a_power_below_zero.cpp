// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(norm_of_a_power_below_zero, UserError) {
  compiled([](const Net&, In in) {
    // error: norm: p must be more than 0, got -1
    return sum(norm(in["x"], -1));
  });
}

}  // namespace tensorgrad::testing
