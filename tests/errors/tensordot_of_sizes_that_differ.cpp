// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(tensordot_of_sizes_that_differ, ShapeError) {
  compiled([](const Net&, In in) {
    // error: tensordot: axis 1 of a [4,3] and axis 1 of b [4,2] differ in size
    return sum(tensordot(in["x"], in["y"], {1}, {1}));
  });
}

}  // namespace tensorgrad::testing
