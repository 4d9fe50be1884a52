// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(rope_of_an_odd_width, ShapeError) {
  compiled([](const Net&, In in) {
    // error: rope: x [..., T, D] with an even D expected, got [4,3]
    return sum(rope(in["x"]));
  });
}

}  // namespace tensorgrad::testing
