// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(full_of_a_fraction_as_integer, DtypeError) {
  compiled([](const Net&, In) {
    return sum(cast(full({2}, 0.5, i32), f32));  // error: full: the number 0.5 cannot be i32
  });
}

}  // namespace tensorgrad::testing
