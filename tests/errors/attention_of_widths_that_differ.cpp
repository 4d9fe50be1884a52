// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(attention_of_widths_that_differ, ShapeError) {
  compiled([](const Net&, In in) {
    // error: scaled_dot_product_attention: expected q [.., T, D], k [.., S, D], v [.., S, E], got q
    // [4,3], k [4,2], v [4,2]
    return sum(scaled_dot_product_attention(in["x"], in["y"], in["y"]));
  });
}

}  // namespace tensorgrad::testing
