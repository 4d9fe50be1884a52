// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(where_with_a_condition_of_floats, DtypeError) {
  compiled([](const Net&, In in) {
    return sum(where(in["x"], 1.0, 0.0));  // error: where: the condition must be bool, got f32
  });
}

}  // namespace tensorgrad::testing
