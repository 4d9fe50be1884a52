// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(conv2d_with_a_negative_padding, ShapeError) {
  compiled([](const Net&, In) {
    // error: conv2d: padding must be at least 0, got -1
    return sum(conv2d(zeros({1, 1, 3, 3}), zeros({1, 1, 2, 2}), {}, {.padding = -1}));
  });
}

}  // namespace tensorgrad::testing
