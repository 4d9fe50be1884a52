// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(outer_of_matrices, ShapeError) {
  compiled([](const Net&, In in) {
    // error: outer: expected two vectors, got a [4,3], b [4,2]
    return sum(outer(in["x"], in["y"]));
  });
}

}  // namespace tensorgrad::testing
