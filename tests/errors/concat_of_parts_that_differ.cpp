// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(concat_of_parts_that_differ, ShapeError) {
  compiled([](const Net&, In in) {
    // error: concat: parts differ on axes other than 0: [4,3] and [4,2]
    return sum(concat({in["x"], in["y"]}, 0));
  });
}

}  // namespace tensorgrad::testing
