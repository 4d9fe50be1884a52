// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(recurrence_from_a_whole_tensor, ShapeError) {
  compiled([](const Net&, In in) {
    // error: linear_recurrence: initial must be [4,1] for a [4,3] along axis 1, got [4,3]
    return sum(linear_recurrence(in["x"], in["x"], 1, in["x"]));
  });
}

}  // namespace tensorgrad::testing
