// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(selective_scan_with_a_wrong_gate, ShapeError) {
  compiled([](const Net&, In in) {
    const Tensor u = unsqueeze(in["x"], 0);
    const Tensor rate = narrow(transpose(in["x"], 0, 1), 1, 0, 2);
    const Tensor gate = narrow(u, 1, 0, 1);
    // error: selective_scan: expected z [1,4,3], got [1,1,3]
    return sum(selective_scan(u, u, rate, narrow(u, 2, 0, 2), narrow(u, 2, 0, 2), {.z = gate}).y);
  });
}

}  // namespace tensorgrad::testing
