// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(narrow_beyond_the_end, ShapeError) {
  compiled([](const Net&, In in) {
    // error: narrow: start 2 and length 3 do not fit axis 1 of [4,3]
    return sum(narrow(in["x"], 1, 2, 3));
  });
}

}  // namespace tensorgrad::testing
