// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(state_of_f16, DtypeError) {
  compiled([](const Net&, In in) {
    // error: state: expected f32, i32, u32 or bool, got f16
    return sum(in["x"]) + sum(cast(state("kept", {3}, 0, f16), f32));
  });
}

}  // namespace tensorgrad::testing
