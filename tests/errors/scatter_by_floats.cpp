// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(scatter_by_floats, DtypeError) {
  compiled([](const Net&, In in) {
    // error: scatter: expected an i32 or u32 index, got f32
    return sum(scatter(in["x"], 1, in["y"], in["y"]));
  });
}

}  // namespace tensorgrad::testing
