// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(index_update_from_another_shape, ShapeError) {
  compiled([](const Net&, In in) {
    // error: index_update: expected a start that broadcasts to [4,1], got [4]
    return sum(index_update(in["x"], 1, in["i"], in["y"]));
  });
}

}  // namespace tensorgrad::testing
