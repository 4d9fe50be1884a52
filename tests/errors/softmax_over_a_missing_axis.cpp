// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(softmax_over_a_missing_axis, ShapeError) {
  compiled([](const Net&, In in) {
    return sum(softmax(in["x"], 5));  // error: softmax: axis 5 is out of range for [4,3]
  });
}

}  // namespace tensorgrad::testing
