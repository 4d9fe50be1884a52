// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(scatter_add_of_truths, DtypeError) {
  compiled([](const Net&, In in) {
    // error: scatter_add: expected f32, i32 or u32, got bool[4]
    return sum(cast(scatter_add(in["i"] > 0, 0, in["i"], in["i"] > 0), f32));
  });
}

}  // namespace tensorgrad::testing
