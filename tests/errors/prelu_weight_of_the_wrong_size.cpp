// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(prelu_weight_of_the_wrong_size, ShapeError) {
  compiled([](const Net&, In in) {
    // error: prelu: a weight [1], or of the size of axis 1, expected for x [4,3], got [4]
    return sum(prelu(in["x"], ones({4})));
  });
}

}  // namespace tensorgrad::testing
