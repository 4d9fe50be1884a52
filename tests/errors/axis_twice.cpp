// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(axis_twice, ShapeError) {
  compiled([](const Net&, In in) {
    return max(in["x"], {0, -2});  // error: max: an axis is repeated
  });
}

}  // namespace tensorgrad::testing
