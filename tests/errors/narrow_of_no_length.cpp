// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(narrow_of_no_length, ShapeError) {
  compiled([](const Net&, In in) {
    // error: narrow: start 1 and length 0 do not fit axis 1 of [4,3]
    return sum(narrow(in["x"], 1, 1, 0));
  });
}

}  // namespace tensorgrad::testing
