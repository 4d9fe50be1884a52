// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(linear_cross_entropy_of_sizes_that_differ, ShapeError) {
  compiled([](const Net& net, In in) {
    // error: linear_cross_entropy: inner sizes differ: x [4,2], weight [2,3] ([classes, size])
    return linear_cross_entropy(in["y"], net.fc.weight.tensor(), in["i"]);
  });
}

}  // namespace tensorgrad::testing
