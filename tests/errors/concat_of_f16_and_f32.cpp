// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(concat_of_f16_and_f32, DtypeError) {
  compiled([](const Net&, In in) {
    // error: concat: parts have different types: f16[4,3] and f32[4,3]
    return sum(concat({cast(in["x"], f16), in["x"]}, 0));
  });
}

}  // namespace tensorgrad::testing
