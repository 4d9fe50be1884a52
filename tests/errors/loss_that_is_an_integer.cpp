// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loss_that_is_an_integer, DtypeError) {
  compiled([](const Net&, In in) {
    return sum(in["i"]);  // error: gradient: the loss must be f32, got i32[]
  });
}

}  // namespace tensorgrad::testing
