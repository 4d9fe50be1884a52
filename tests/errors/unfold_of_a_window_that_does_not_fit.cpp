// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(unfold_of_a_window_that_does_not_fit, ShapeError) {
  compiled([](const Net&, In) {
    // error: unfold: a window of 3 with dilation 2 does not fit axis 1 of [4,4]
    return sum(unfold(zeros({4, 4}), 1, 3, 1, 2));
  });
}

}  // namespace tensorgrad::testing
