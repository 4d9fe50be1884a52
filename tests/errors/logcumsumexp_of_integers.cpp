// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(logcumsumexp_of_integers, DtypeError) {
  compiled([](const Net&, In in) {
    // error: logcumsumexp: expected f32, got i32
    return sum(logcumsumexp(in["i"], 0));
  });
}

}  // namespace tensorgrad::testing
