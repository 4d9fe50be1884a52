// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(addition_of_truths, DtypeError) {
  compiled([](const Net&, In in) {
    const Tensor positive = in["x"] > 0;
    // error: add: expected f32 or i32 or u32, got bool
    return sum(cast(positive + positive, f32));
  });
}

}  // namespace tensorgrad::testing
