// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(softmax_of_integers, DtypeError) {
  compiled([](const Net&, In in) {
    return sum(softmax(in["i"]));  // error: softmax: expected f32, got i32
  });
}

}  // namespace tensorgrad::testing
