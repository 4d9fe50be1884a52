// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(randint_of_nothing, UserError) {
  compiled([](const Net&, In) {
    // error: randint: expected i32 numbers lo < hi less than 2^31 apart, got 3 and 3
    return mean(cast(randint({2}, 3, 3), f32));
  });
}

}  // namespace tensorgrad::testing
