// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(conv1d_with_a_bias_of_the_wrong_size, ShapeError) {
  compiled([](const Net&, In) {
    // error: conv1d: bias must be [4], got [3]
    return sum(conv1d(zeros({1, 2, 5}), zeros({4, 2, 3}), zeros({3})));
  });
}

}  // namespace tensorgrad::testing
