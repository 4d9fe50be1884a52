// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(attention_layer_of_heads_that_do_not_divide, ShapeError) {
  compiled([](const Net&, In in) {
    // error: MultiheadAttention: size must be a multiple of heads and heads of kv_heads, got 8, 3
    // and 3
    return sum(nn::MultiheadAttention(8, 3)(in["x"]));
  });
}

}  // namespace tensorgrad::testing
