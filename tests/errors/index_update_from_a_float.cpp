// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(index_update_from_a_float, DtypeError) {
  compiled([](const Net&, In in) {
    // error: index_update: expected an i32 or u32 start, got f32[4,2]
    return sum(index_update(in["x"], 1, in["y"], in["y"]));
  });
}

}  // namespace tensorgrad::testing
