// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(mean_of_integers, DtypeError) {
  compiled([](const Net&, In in) {
    return mean(in["i"]);  // error: mean: expected f32, got i32
  });
}

}  // namespace tensorgrad::testing
