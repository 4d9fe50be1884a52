// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(stack_over_a_missing_axis, ShapeError) {
  compiled([](const Net&, In in) {
    // error: stack: a new axis of [4,3] must be between -3 and 2, got 3
    return sum(stack({in["x"], in["x"]}, 3));
  });
}

}  // namespace tensorgrad::testing
