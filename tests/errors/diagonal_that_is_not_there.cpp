// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(diagonal_that_is_not_there, ShapeError) {
  compiled([](const Net&, In in) {
    // error: diagonal: [4,3] has no diagonal 3
    return sum(diagonal(in["x"], 3));
  });
}

}  // namespace tensorgrad::testing
