// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(clamp_of_integers_to_a_fraction, DtypeError) {
  compiled([](const Net&, In in) {
    // error: clamp: the number 0.5 is not representable as i32
    return sum(cast(clamp(in["i"], 0.5, 3), f32));
  });
}

}  // namespace tensorgrad::testing
