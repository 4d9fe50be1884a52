// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(rope_of_an_odd_width, ShapeError) {
  compiled([](const Net&, In in) {
    // error: rope: expected x [..., T, D] with even D, got [4,3]
    return sum(rope(in["x"]));
  });
}

}  // namespace tensorgrad::testing
