// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(matmul_inner_sizes, ShapeError) {
  compiled([](const Net&, In in) {
    return sum(matmul(in["x"], in["y"]));  // error: matmul: inner sizes differ: a [4,3], b [4,2]
  });
}

}  // namespace tensorgrad::testing
