// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(argmax_of_a_scalar, ShapeError) {
  compiled([](const Net&, In in) {
    return cast(argmax(sum(in["x"]), -1), f32);  // error: argmax: axis -1 is out of range for []
  });
}

}  // namespace tensorgrad::testing
