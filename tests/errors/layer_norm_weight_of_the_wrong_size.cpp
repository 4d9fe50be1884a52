// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(layer_norm_weight_of_the_wrong_size, ShapeError) {
  compiled([](const Net&, In in) {
    // error: layer_norm: weight and bias must be [3] for x [4,3], got [4]
    return sum(layer_norm(in["x"], zeros({4})));
  });
}

}  // namespace tensorgrad::testing
