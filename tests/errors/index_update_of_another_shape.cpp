// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(index_update_of_another_shape, ShapeError) {
  compiled([](const Net&, In in) {
    // error: index_update: x [4,3] and update [4,2] differ on axes other than 0
    return sum(index_update(in["x"], 0, narrow(in["i"], 0, 0, 1), in["y"]));
  });
}

}  // namespace tensorgrad::testing
