// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(matmul_of_a_scalar, ShapeError) {
  compiled([](const Net&, In) {
    // error: matmul: expected at least one axis, got a [], b [3,2]
    return sum(matmul(zeros({}), zeros({3, 2})));
  });
}

}  // namespace tensorgrad::testing
