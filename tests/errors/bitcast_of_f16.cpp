// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(bitcast_of_f16, DtypeError) {
  compiled([](const Net&, In in) {
    // error: bitcast: expected f32 or i32 or u32 as the target, got f16
    return sum(cast(bitcast(in["x"], f16), f32));
  });
}

}  // namespace tensorgrad::testing
