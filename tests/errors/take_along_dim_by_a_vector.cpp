// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(take_along_dim_by_a_vector, ShapeError) {
  compiled([](const Net&, In in) {
    // error: take_along_dim: x [4,3] and index [4] differ in the number of axes
    return sum(take_along_dim(in["x"], in["i"], 0));
  });
}

}  // namespace tensorgrad::testing
