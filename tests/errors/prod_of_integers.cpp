// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(prod_of_integers, DtypeError) {
  compiled([](const Net&, In in) {
    // error: prod: f32 expected, got i32
    return sum(prod(in["i"]));
  });
}

}  // namespace tensorgrad::testing
