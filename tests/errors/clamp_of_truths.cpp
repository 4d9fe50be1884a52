// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(clamp_of_truths, DtypeError) {
  compiled([](const Net&, In in) {
    // error: clamp: expected f32 or i32 or u32, got bool
    return sum(cast(clamp(in["i"] > 0, 0, 1), f32));
  });
}

}  // namespace tensorgrad::testing
