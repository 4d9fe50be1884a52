// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(hardtanh_with_bounds_swapped, UserError) {
  compiled([](const Net&, In in) {
    // error: hardtanh: the lower bound 1 is above the upper bound -1
    return sum(hardtanh(in["x"], 1, -1));
  });
}

}  // namespace tensorgrad::testing
