// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(conv2d_with_a_kernel_larger_than_the_input, ShapeError) {
  compiled([](const Net&, In) {
    // error: conv2d: a kernel of 6 is larger than the height of 3 with padding 1
    return sum(conv2d(zeros({1, 1, 3, 9}), zeros({1, 1, 6, 6}), {}, {.padding = 1}));
  });
}

}  // namespace tensorgrad::testing
