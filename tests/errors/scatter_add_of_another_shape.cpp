// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(scatter_add_of_another_shape, ShapeError) {
  compiled([](const Net&, In in) {
    // error: scatter_add: x [4,3] and source [2,1] differ on axes other than 1
    return sum(scatter_add(in["x"], 1, zeros({2, 1}, i32), zeros({2, 1})));
  });
}

}  // namespace tensorgrad::testing
