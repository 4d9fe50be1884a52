// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(matmul_of_integers, DtypeError) {
  compiled([](const Net&, In) {
    // error: matmul: f32 expected, got i32[2,2]
    return sum(matmul(zeros({2, 2}, i32), zeros({2, 2}, i32)));
  });
}

}  // namespace tensorgrad::testing
