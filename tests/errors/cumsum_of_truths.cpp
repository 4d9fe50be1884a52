// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(cumsum_of_truths, DtypeError) {
  compiled([](const Net&, In in) {
    // error: cumsum: f32, i32 or u32 expected, got bool
    return sum(cast(cumsum(in["x"] > 0.0, 1), f32));
  });
}

}  // namespace tensorgrad::testing
