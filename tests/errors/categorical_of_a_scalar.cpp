// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(categorical_of_a_scalar, ShapeError) {
  compiled([](const Net&, In in) {
    // error: categorical: axis -1 is out of range for []
    return cast(categorical(sum(in["x"])), f32);
  });
}

}  // namespace tensorgrad::testing
