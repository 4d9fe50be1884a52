// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(conv2d_with_a_stride_of_zero, ShapeError) {
  compiled([](const Net&, In) {
    // error: conv2d: stride must be at least 1, got 0
    return sum(conv2d(zeros({1, 1, 3, 3}), zeros({1, 1, 2, 2}), {}, {.stride = {1, 0}}));
  });
}

}  // namespace tensorgrad::testing
