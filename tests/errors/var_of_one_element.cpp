// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(var_of_one_element, ShapeError) {
  compiled([](const Net&, In in) {
    // error: var: 1 elements with a correction of 1 leave no degrees of freedom
    return var(narrow(in["x"], 0, 0, 1), 0);
  });
}

}  // namespace tensorgrad::testing
