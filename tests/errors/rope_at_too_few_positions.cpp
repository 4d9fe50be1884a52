// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(rope_at_too_few_positions, ShapeError) {
  compiled([](const Net&, In in) {
    // error: rope: positions must be [4] or [], got [2]
    return sum(rope(in["y"], {.position = zeros({2})}));
  });
}

}  // namespace tensorgrad::testing
