// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(matmul_batch_sizes, ShapeError) {
  compiled([](const Net&, In) {
    // error: matmul: shapes do not broadcast: a [2], b [5]
    return sum(matmul(zeros({2, 4, 3}), zeros({5, 3, 4})));
  });
}

}  // namespace tensorgrad::testing
