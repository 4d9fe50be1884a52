// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(ssd_of_groups_that_do_not_divide, ShapeError) {
  compiled([](const Net&, In in) {
    const Tensor x = reshape(in["x"], {1, 2, 3, 2}), gates = reshape(in["y"], {1, 2, 2, 2});
    // error: ssd: expected x [B, L, H, P] and B [B, L, G, N] with G dividing H, got [1,2,3,2] and
    // [1,2,2,2]
    return sum(ssd(x, x, x, gates, gates).y);
  });
}

}  // namespace tensorgrad::testing
