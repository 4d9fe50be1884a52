// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(embedding_by_floats, DtypeError) {
  compiled([](const Net&, In in) {
    // error: embedding: an index must be i32 or u32, got f32[12,2]
    return sum(embedding(in["x"], zeros({5, 2})));
  });
}

}  // namespace tensorgrad::testing
