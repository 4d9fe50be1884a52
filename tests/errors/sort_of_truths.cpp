// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(sort_of_truths, DtypeError) {
  compiled([](const Net&, In in) {
    // error: sort: f32, i32 or u32 expected, got bool
    return sum(cast(sort(in["x"] > 0.0).indices, f32));
  });
}

}  // namespace tensorgrad::testing
