// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(op_that_does_not_take_the_dtype, DtypeError) {
  compiled([](const Net&, In in) {
    return sum(exp(in["i"]));  // error: exp: expected f32, got i32
  });
}

}  // namespace tensorgrad::testing
