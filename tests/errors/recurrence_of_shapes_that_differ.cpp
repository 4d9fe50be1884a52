// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(recurrence_of_shapes_that_differ, ShapeError) {
  compiled([](const Net&, In in) {
    // error: linear_recurrence: shapes differ: a [4,3], b [4,2]
    return sum(linear_recurrence(in["x"], in["y"], 0));
  });
}

}  // namespace tensorgrad::testing
