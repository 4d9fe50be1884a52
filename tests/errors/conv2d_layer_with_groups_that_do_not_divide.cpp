// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(conv2d_layer_with_groups_that_do_not_divide, ShapeError) {
  // error: Conv2d: 2 groups do not divide the channels 4 and 3
  static_cast<void>(nn::Conv2d(3, 4, 3, {.groups = 2}));
}

}  // namespace tensorgrad::testing
