// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(associative_scan_that_reduces, ShapeError) {
  compiled([](const Net&, In in) {
    const auto combine = [](Tensor a, Tensor b) { return sum(a + b, 0, true); };
    // error: associative_scan: the function returned f32[1,3] for two f32[3,3]
    return sum(associative_scan(combine, in["x"], 0));
  });
}

}  // namespace tensorgrad::testing
