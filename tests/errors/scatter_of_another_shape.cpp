// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(scatter_of_another_shape, ShapeError) {
  compiled([](const Net&, In in) {
    // error: scatter: index and source must match x [4,3] except on axis 0, got [4] and [4,3]
    return sum(scatter(in["x"], 0, in["i"], in["x"]));
  });
}

}  // namespace tensorgrad::testing
