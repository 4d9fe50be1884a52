// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(number_too_large_for_an_integer, DtypeError) {
  compiled([](const Net&, In in) {
    return sum(in["i"] + 3e9);  // error: add: the number 3000000000 is not representable as i32
  });
}

}  // namespace tensorgrad::testing
