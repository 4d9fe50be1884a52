// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(reshape_to_another_count, ShapeError) {
  compiled([](const Net&, In in) {
    // error: reshape: cannot make [5,2] (10 elements) from [4,3] (12 elements)
    return sum(reshape(in["x"], {5, 2}));
  });
}

}  // namespace tensorgrad::testing
