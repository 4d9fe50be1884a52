// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(reshape_with_two_unknowns, ShapeError) {
  compiled([](const Net&, In in) {
    return sum(reshape(in["x"], {-1, -1}));  // error: reshape: cannot make [-1,-1] from [4,3]
  });
}

}  // namespace tensorgrad::testing
