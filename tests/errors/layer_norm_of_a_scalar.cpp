// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(layer_norm_of_a_scalar, ShapeError) {
  compiled([](const Net&, In in) {
    return layer_norm(sum(in["x"]));  // error: layer_norm: axis -1 is out of range for []
  });
}

}  // namespace tensorgrad::testing
