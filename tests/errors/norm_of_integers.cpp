// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(norm_of_integers, DtypeError) {
  compiled([](const Net&, In in) {
    // error: norm: expected f32, got i32
    return sum(norm(in["i"]));
  });
}

}  // namespace tensorgrad::testing
