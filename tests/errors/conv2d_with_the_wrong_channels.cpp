// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(conv2d_with_the_wrong_channels, ShapeError) {
  compiled([](const Net&, In) {
    // error: conv2d: channels differ: 3 and 4 in 1 groups, the weight expects 2 and 4
    return sum(conv2d(zeros({1, 3, 5, 5}), zeros({4, 2, 3, 3})));
  });
}

}  // namespace tensorgrad::testing
