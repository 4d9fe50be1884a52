// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(prelu_weight_of_the_wrong_size, ShapeError) {
  compiled([](const Net&, In in) {
    // error: prelu: weight must be [1] or match axis 1 of x [4,3], got [4]
    return sum(prelu(in["x"], ones({4})));
  });
}

}  // namespace tensorgrad::testing
