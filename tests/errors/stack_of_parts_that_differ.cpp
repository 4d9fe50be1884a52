// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(stack_of_parts_that_differ, ShapeError) {
  compiled([](const Net&, In in) {
    // error: stack: parts differ on axes other than 0: [1,4,3] and [1,4,2]
    return sum(stack({in["x"], in["y"]}));
  });
}

}  // namespace tensorgrad::testing
