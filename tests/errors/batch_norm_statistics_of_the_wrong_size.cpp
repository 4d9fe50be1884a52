// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(batch_norm_statistics_of_the_wrong_size, ShapeError) {
  compiled([](const Net&, In in) {
    // error: batch_norm: mean and var must be [3] for x [4,3], got [2] and [3]
    return sum(batch_norm(in["x"], zeros({2}), ones({3})));
  });
}

}  // namespace tensorgrad::testing
