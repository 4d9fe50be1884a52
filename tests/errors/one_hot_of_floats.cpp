// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(one_hot_of_floats, DtypeError) {
  compiled([](const Net&, In in) {
    // error: one_hot: expected an i32 or u32 index, got f32
    return sum(one_hot(in["x"], 3));
  });
}

}  // namespace tensorgrad::testing
