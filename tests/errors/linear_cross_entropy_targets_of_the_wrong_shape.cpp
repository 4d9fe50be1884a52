// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(linear_cross_entropy_targets_of_the_wrong_shape, ShapeError) {
  compiled([](const Net& net, In in) {
    // error: linear_cross_entropy: targets must be [4] for x [4,3], got [2,2]
    return linear_cross_entropy(in["x"], net.fc.weight.tensor(), reshape(in["i"], {2, 2}));
  });
}

}  // namespace tensorgrad::testing
