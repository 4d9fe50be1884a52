// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(roll_with_a_missing_axis, ShapeError) {
  compiled([](const Net&, In in) {
    // error: roll: 2 shifts for 1 axes
    return sum(roll(in["x"], {1, 1}, {0}));
  });
}

}  // namespace tensorgrad::testing
