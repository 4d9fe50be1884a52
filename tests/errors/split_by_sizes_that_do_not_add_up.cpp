// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(split_by_sizes_that_do_not_add_up, ShapeError) {
  compiled([](const Net&, In in) {
    // error: split: the sizes add up to 4, axis 1 of [4,3] does not
    return sum(split(in["x"], {2, 2}, 1)[0]);
  });
}

}  // namespace tensorgrad::testing
