// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(multinomial_of_too_few, ShapeError) {
  compiled([](const Net&, In) {
    // error: multinomial: cannot draw 4 without replacement from [2,3]
    return mean(cast(multinomial(ones({2, 3}), 4), f32));
  });
}

}  // namespace tensorgrad::testing
