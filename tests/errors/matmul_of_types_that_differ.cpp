// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(matmul_of_types_that_differ, DtypeError) {
  compiled([](const Net&, In in) {
    // error: matmul: expected f32, or both i32 or both u32, got i32[2,2] and u32[2,2]
    return sum(cast(matmul(reshape(in["i"], {2, 2}), iota({2, 2}, 1, u32)), f32));
  });
}

}  // namespace tensorgrad::testing
