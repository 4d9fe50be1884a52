// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(size_of_a_missing_axis, ShapeError) {
  compiled([](const Net&, In in) {
    return sum(zeros({in["x"].size(2)}));  // error: size: axis 2 is out of range for [4,3]
  });
}

}  // namespace tensorgrad::testing
