// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(operator_on_shapes_that_do_not_broadcast, ShapeError) {
  compiled([](const Net&, In in) {
    const Tensor x = in["x"], y = in["y"];
    return sum(x + y);  // error: add: shapes do not broadcast: a [4,3], b [4,2]
  });
}

}  // namespace tensorgrad::testing
