// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(matmul_of_a_vector, ShapeError) {
  compiled([](const Net&, In) {
    // error: matmul: at least two axes expected: a [3], b [3,2]
    return sum(matmul(zeros({3}), zeros({3, 2})));
  });
}

}  // namespace tensorgrad::testing
