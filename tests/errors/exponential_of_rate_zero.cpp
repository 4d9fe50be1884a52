// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(exponential_of_rate_zero, UserError) {
  compiled([](const Net&, In) {
    // error: exponential: expected a rate above 0, got 0
    return mean(exponential({2}, 0));
  });
}

}  // namespace tensorgrad::testing
