// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(split_by_sizes_that_do_not_add_up, ShapeError) {
  compiled([](const Net&, In in) {
    // error: split: sizes summing to 4 do not match axis 1 of [4,3]
    return sum(split(in["x"], {2, 2}, 1)[0]);
  });
}

}  // namespace tensorgrad::testing
