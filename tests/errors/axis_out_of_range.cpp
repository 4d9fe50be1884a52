// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(axis_out_of_range, ShapeError) {
  compiled([](const Net&, In in) {
    return sum(in["x"], 2);  // error: sum: axis 2 is out of range for [4,3]
  });
}

}  // namespace tensorgrad::testing
