// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(recurrence_of_integers, DtypeError) {
  compiled([](const Net&, In in) {
    // error: linear_recurrence: expected f32, got i32[4]
    return sum(cast(linear_recurrence(in["i"], in["i"], 0), f32));
  });
}

}  // namespace tensorgrad::testing
