// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(permute_that_repeats_an_axis, ShapeError) {
  compiled([](const Net&, In in) {
    // error: permute: axes [0,0] do not name each axis of [4,3] exactly once
    return sum(permute(in["x"], {0, 0}));
  });
}

}  // namespace tensorgrad::testing
