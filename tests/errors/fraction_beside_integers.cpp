// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(fraction_beside_integers, DtypeError) {
  compiled([](const Net&, In in) {
    return sum(in["i"] + 0.5);  // error: add: the number 0.5 is not representable as i32
  });
}

}  // namespace tensorgrad::testing
