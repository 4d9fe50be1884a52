// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(argsort_over_a_missing_axis, ShapeError) {
  compiled([](const Net&, In in) {
    // error: argsort: axis -3 is out of range for [4,3]
    return sum(cast(argsort(in["x"], -3), f32));
  });
}

}  // namespace tensorgrad::testing
