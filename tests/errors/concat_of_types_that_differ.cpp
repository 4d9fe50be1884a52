// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(concat_of_types_that_differ, DtypeError) {
  compiled([](const Net&, In in) {
    const Tensor first = flatten(in["x"]);
    // error: concat: parts have different types: f32[12] and i32[4]
    return sum(concat({first, in["i"]}));
  });
}

}  // namespace tensorgrad::testing
