// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(gather_by_floats, DtypeError) {
  compiled([](const Net&, In in) {
    // error: gather: an index must be i32 or u32, got f32[4,2]
    return sum(gather(in["x"], 1, in["y"]));
  });
}

}  // namespace tensorgrad::testing
