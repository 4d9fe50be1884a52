// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(pad_with_half_a_pair, ShapeError) {
  compiled([](const Net&, In in) {
    // error: pad: expected pairs of amounts for the last axes of [4,3], got 3 numbers
    return sum(pad(in["x"], {1, 1, 1}));
  });
}

}  // namespace tensorgrad::testing
