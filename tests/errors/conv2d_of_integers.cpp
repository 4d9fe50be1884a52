// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(conv2d_of_integers, DtypeError) {
  compiled([](const Net&, In) {
    // error: conv2d: expected f32, got i32[1,1,3,3]
    return sum(cast(conv2d(zeros({1, 1, 3, 3}, i32), zeros({1, 1, 2, 2})), f32));
  });
}

}  // namespace tensorgrad::testing
