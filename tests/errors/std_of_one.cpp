// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(std_of_one, ShapeError) {
  compiled([](const Net&, In in) {
    // error: std: 1 elements with a correction of 1 leave no degrees of freedom
    return sum(tensorgrad::std(narrow(in["x"], 1, 0, 1), 1));
  });
}

}  // namespace tensorgrad::testing
