// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(layer_norm_over_other_axes, ShapeError) {
  compiled([](const Net&, In in) {
    // error: layer_norm: the last axes of x [4,3] are not [4]
    return sum(layer_norm(in["x"], Shape{4}));
  });
}

}  // namespace tensorgrad::testing
