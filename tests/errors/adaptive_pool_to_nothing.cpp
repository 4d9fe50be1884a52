// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(adaptive_pool_to_nothing, ShapeError) {
  compiled([](const Net&, In) {
    // error: adaptive_avg_pool2d: every size must be at least 1, got [0,2]
    return sum(adaptive_avg_pool2d(zeros({1, 1, 4, 4}), {0, 2}));
  });
}

}  // namespace tensorgrad::testing
