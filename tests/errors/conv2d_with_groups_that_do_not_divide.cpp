// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(conv2d_with_groups_that_do_not_divide, ShapeError) {
  compiled([](const Net&, In) {
    // error: conv2d: 3 channels cannot be divided into 2 groups
    return sum(conv2d(zeros({1, 3, 5, 5}), zeros({4, 1, 3, 3}), {}, {.groups = 2}));
  });
}

}  // namespace tensorgrad::testing
