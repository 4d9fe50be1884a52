// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(negative_number_beside_unsigned, DtypeError) {
  compiled([](const Net&, In) {
    // error: mul: the number -1 is not representable as u32
    return sum(cast(arange(4, u32) * -1, f32));
  });
}

}  // namespace tensorgrad::testing
