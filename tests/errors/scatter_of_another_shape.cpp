// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(scatter_of_another_shape, ShapeError) {
  compiled([](const Net&, In in) {
    // error: scatter: index and source must be like x [4,3] but for axis 0, got [4] and [4,3]
    return sum(scatter(in["x"], 0, in["i"], in["x"]));
  });
}

}  // namespace tensorgrad::testing
