// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(index_update_of_another_type, DtypeError) {
  compiled([](const Net&, In in) {
    // error: index_update: x f32[4,3] and update i32[4,3] differ in type
    return sum(index_update(in["x"], 0, narrow(in["i"], 0, 0, 1), cast(in["x"], i32)));
  });
}

}  // namespace tensorgrad::testing
