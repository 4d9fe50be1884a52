// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(conv_transpose2d_with_too_much_output_padding, ShapeError) {
  compiled([](const Net&, In) {
    // error: conv_transpose2d: output_padding must be less than stride or dilation, got 2
    return sum(conv_transpose2d(zeros({1, 2, 3, 3}), zeros({2, 1, 2, 2}), {},
                                {.stride = 2, .output_padding = 2}));
  });
}

}  // namespace tensorgrad::testing
