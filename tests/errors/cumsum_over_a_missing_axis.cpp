// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(cumsum_over_a_missing_axis, ShapeError) {
  compiled([](const Net&, In in) {
    // error: cumsum: axis 2 is out of range for [4,3]
    return sum(cumsum(in["x"], 2));
  });
}

}  // namespace tensorgrad::testing
