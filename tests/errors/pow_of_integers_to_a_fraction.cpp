// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(pow_of_integers_to_a_fraction, DtypeError) {
  compiled([](const Net&, In in) {
    // error: pow: the number 0.5 is not representable as i32
    return sum(cast(pow(in["i"], 0.5), f32));
  });
}

}  // namespace tensorgrad::testing
