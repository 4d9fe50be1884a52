// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(clamp_with_bounds_swapped, UserError) {
  compiled([](const Net&, In in) {
    // error: clamp: the lower bound 2 is above the upper bound 1
    return sum(clamp(in["x"], 2, 1));
  });
}

}  // namespace tensorgrad::testing
