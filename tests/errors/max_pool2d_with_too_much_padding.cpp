// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(max_pool2d_with_too_much_padding, ShapeError) {
  compiled([](const Net&, In) {
    // error: max_pool2d: padding must be at most half of the kernel, got 2 for 2
    return sum(max_pool2d(zeros({1, 1, 4, 4}), 2, {.padding = 2}));
  });
}

}  // namespace tensorgrad::testing
