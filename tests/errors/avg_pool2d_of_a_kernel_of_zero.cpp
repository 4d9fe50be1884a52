// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(avg_pool2d_of_a_kernel_of_zero, ShapeError) {
  compiled([](const Net&, In) {
    // error: avg_pool2d: kernel must be at least 1, got 0
    return sum(avg_pool2d(zeros({1, 1, 4, 4}), 0));
  });
}

}  // namespace tensorgrad::testing
