// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(glu_of_an_odd_axis, ShapeError) {
  compiled([](const Net&, In in) {
    // error: glu: axis -1 of [4,3] cannot be halved
    return sum(glu(in["x"]));
  });
}

}  // namespace tensorgrad::testing
