// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(cross_entropy_targets_of_floats, DtypeError) {
  compiled([](const Net&, In in) {
    // error: cross_entropy: targets must be i32, got f32
    return cross_entropy(in["x"], sum(in["x"], 1));
  });
}

}  // namespace tensorgrad::testing
