// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(dropout2d_of_a_matrix, ShapeError) {
  compiled([](const Net&, In in) {
    // error: dropout2d: expected 4 axes, got [4,3]
    return sum(dropout2d(in["x"], 0.5));
  });
}

}  // namespace tensorgrad::testing
