// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(uniform_of_nothing, UserError) {
  compiled([](const Net&, In) {
    // error: uniform: expected finite floats lo < hi, got 2 and 1
    return mean(uniform({2}, 2, 1));
  });
}

}  // namespace tensorgrad::testing
