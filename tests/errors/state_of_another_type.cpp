// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(state_of_another_type, ShapeError) {
  compiled([](const Net&, In in) {
    state("count", {});
    set_state("count", in["x"]);  // error: set_state: 'count' is f32[], got f32[4,3]
    return sum(in["x"]);
  });
}

}  // namespace tensorgrad::testing
