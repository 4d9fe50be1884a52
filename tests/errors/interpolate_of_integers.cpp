// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(interpolate_of_integers, DtypeError) {
  compiled([](const Net&, In) {
    // error: interpolate: expected f32, got i32[1,1,4,4]
    return sum(cast(interpolate(zeros({1, 1, 4, 4}, i32), 8), f32));
  });
}

}  // namespace tensorgrad::testing
