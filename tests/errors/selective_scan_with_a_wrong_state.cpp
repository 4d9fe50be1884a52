// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(selective_scan_with_a_wrong_state, ShapeError) {
  compiled([](const Net&, In in) {
    const Tensor u = unsqueeze(in["x"], 0);
    // error: selective_scan: expected initial_state [1,3,4], got [1,4,3]
    return sum(selective_scan(u, u, transpose(in["x"]), matmul(u, transpose(in["x"])),
                              matmul(u, transpose(in["x"])), {.initial_state = u})
                   .y);
  });
}

}  // namespace tensorgrad::testing
