// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(normal_of_a_negative_deviation, UserError) {
  compiled([](const Net&, In) {
    // error: normal: expected a standard deviation of at least 0, got -1
    return mean(normal({2}, 0, -1));
  });
}

}  // namespace tensorgrad::testing
