// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(zeros_of_size_zero, ShapeError) {
  compiled([](const Net&, In in) {
    // error: zeros: every size must be at least 1, got [2,0]
    return sum(in["x"]) + sum(zeros({2, 0}));
  });
}

}  // namespace tensorgrad::testing
