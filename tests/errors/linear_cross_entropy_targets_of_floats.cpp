// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(linear_cross_entropy_targets_of_floats, DtypeError) {
  compiled([](const Net& net, In in) {
    // error: linear_cross_entropy: targets must be i32, got f32
    return linear_cross_entropy(in["x"], net.fc.weight.tensor(), sum(in["x"], 1));
  });
}

}  // namespace tensorgrad::testing
