// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(conv2d_of_three_axes, ShapeError) {
  compiled([](const Net&, In) {
    // error: conv2d: expected x and weight with 4 axes, got x [3,5,5], weight [4,3,3,3]
    return sum(conv2d(zeros({3, 5, 5}), zeros({4, 3, 3, 3})));
  });
}

}  // namespace tensorgrad::testing
