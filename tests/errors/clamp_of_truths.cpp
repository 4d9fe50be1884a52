// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(clamp_of_truths, DtypeError) {
  compiled([](const Net&, In in) {
    // error: clamp: f32 or i32 or u32 expected, got bool
    return sum(cast(clamp(in["i"] > 0, 0, 1), f32));
  });
}

}  // namespace tensorgrad::testing
