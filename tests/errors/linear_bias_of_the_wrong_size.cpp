// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(linear_bias_of_the_wrong_size, ShapeError) {
  compiled([](const Net&, In in) {
    // error: linear: bias must be [2] for weight [2,3], got [3]
    return mean(linear(in["x"], zeros({2, 3}), zeros({3})));
  });
}

}  // namespace tensorgrad::testing
