// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(where_with_branches_of_two_types, DtypeError) {
  compiled([](const Net&, In in) {
    // error: where: dtypes differ: a bool, b f32, c i32
    return sum(where(in["i"] > 0, flatten(narrow(in["x"], 1, 0, 1)), in["i"]));
  });
}

}  // namespace tensorgrad::testing
