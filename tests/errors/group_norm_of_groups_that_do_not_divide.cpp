// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(group_norm_of_groups_that_do_not_divide, ShapeError) {
  compiled([](const Net&, In in) {
    // error: group_norm: the 3 channels of x [4,3] cannot be divided into 2 groups
    return sum(group_norm(in["x"], 2));
  });
}

}  // namespace tensorgrad::testing
