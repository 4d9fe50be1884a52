// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(selective_scan_of_matrices, ShapeError) {
  compiled([](const Net&, In in) {
    // error: selective_scan: expected u [B, L, D], got [4,3]
    return sum(selective_scan(in["x"], in["x"], in["y"], in["x"], in["x"]).y);
  });
}

}  // namespace tensorgrad::testing
