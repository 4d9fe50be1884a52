// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(selective_scan_with_a_wrong_rate, ShapeError) {
  compiled([](const Net&, In in) {
    const Tensor u = unsqueeze(in["x"], 0);
    // error: selective_scan: expected A [3, N], got [4,2]
    return sum(selective_scan(u, u, in["y"], u, u).y);
  });
}

}  // namespace tensorgrad::testing
