// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(mse_of_integers, DtypeError) {
  compiled([](const Net&, In in) {
    return mse(in["i"], in["i"]);  // error: mse: expected f32, got i32
  });
}

}  // namespace tensorgrad::testing
