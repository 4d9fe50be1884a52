// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(cumprod_of_integers, DtypeError) {
  compiled([](const Net&, In in) {
    // error: cumprod: f32 expected, got i32[4]
    return sum(cast(cumprod(in["i"], 0), f32));
  });
}

}  // namespace tensorgrad::testing
