// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(attention_of_heads_that_do_not_divide, ShapeError) {
  compiled([](const Net&, In) {
    // error: scaled_dot_product_attention: 3 heads of q are not a multiple of the 2 heads of k and
    // v
    return sum(scaled_dot_product_attention(zeros({3, 4, 2}), zeros({2, 4, 2}), zeros({2, 4, 2}),
                                            {.enable_gqa = true}));
  });
}

}  // namespace tensorgrad::testing
