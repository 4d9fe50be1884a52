// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(matmul_of_truths, DtypeError) {
  compiled([](const Net&, In in) {
    // error: matmul: expected f32, or both i32 or both u32, got bool[4,3] and bool[3,4]
    return sum(cast(matmul(in["x"] > 0, transpose(in["x"] > 0)), f32));
  });
}

}  // namespace tensorgrad::testing
