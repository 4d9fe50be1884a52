// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(broadcast_to_a_smaller_shape, ShapeError) {
  compiled([](const Net&, In in) {
    // error: broadcast_to: cannot broadcast [4,3] to [4,1]
    return sum(broadcast_to(in["x"], {4, 1}));
  });
}

}  // namespace tensorgrad::testing
