// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(movedim_of_one_axis_twice, ShapeError) {
  compiled([](const Net&, In in) {
    // error: movedim: an axis is repeated
    return sum(movedim(in["x"], {0, 0}, {0, 1}));
  });
}

}  // namespace tensorgrad::testing
