// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(matmul_of_a_vector_of_the_wrong_size, ShapeError) {
  compiled([](const Net&, In) {
    // error: matmul: inner sizes differ: a [4], b [3,2]
    return sum(matmul(zeros({4}), zeros({3, 2})));
  });
}

}  // namespace tensorgrad::testing
