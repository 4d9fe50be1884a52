// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(linear_cross_entropy_with_a_bias_of_the_wrong_size, ShapeError) {
  compiled([](const Net& net, In in) {
    const Tensor weight = net.fc.weight.tensor(), bias = narrow(net.fc.bias->tensor(), 0, 0, 1);
    // error: linear_cross_entropy: expected bias [2], got [1]
    return linear_cross_entropy(in["x"], weight, in["i"], {.bias = bias, .rows = 2});
  });
}

}  // namespace tensorgrad::testing
