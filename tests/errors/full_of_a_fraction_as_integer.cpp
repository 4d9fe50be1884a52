// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(full_of_a_fraction_as_integer, DtypeError) {
  compiled([](const Net&, In) {
    // error: full: the number 0.5 is not representable as i32
    return sum(cast(full({2}, 0.5, i32), f32));
  });
}

}  // namespace tensorgrad::testing
