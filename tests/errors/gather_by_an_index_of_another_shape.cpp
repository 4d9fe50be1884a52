// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(gather_by_an_index_of_another_shape, ShapeError) {
  compiled([](const Net&, In in) {
    // error: gather: x [4,3] and index [3,1] differ on axes other than 1
    return sum(gather(in["x"], 1, zeros({3, 1}, i32)));
  });
}

}  // namespace tensorgrad::testing
