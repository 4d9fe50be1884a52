// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(bitwise_not_of_floats, DtypeError) {
  compiled([](const Net&, In in) {
    // error: bitwise_not: expected i32 or u32, got f32
    return sum(cast(bitwise_not(in["x"]), f32));
  });
}

}  // namespace tensorgrad::testing
