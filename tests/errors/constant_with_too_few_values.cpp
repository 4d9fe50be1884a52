// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(constant_with_too_few_values, ShapeError) {
  compiled([](const Net&, In) {
    // error: constant: [3] has 3 elements, got 2 values
    return sum(constant(std::vector<float>{1, 2}, {3}));
  });
}

}  // namespace tensorgrad::testing
