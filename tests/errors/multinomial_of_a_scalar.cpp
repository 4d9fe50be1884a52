// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(multinomial_of_a_scalar, ShapeError) {
  compiled([](const Net&, In) {
    // error: multinomial: expected weights [..., C] and at least one draw, got [] and 3
    return mean(cast(multinomial(zeros({}), 3), f32));
  });
}

}  // namespace tensorgrad::testing
