// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(embedding_in_a_table_of_three_axes, ShapeError) {
  compiled([](const Net&, In in) {
    // error: embedding: expected a table [V, D], got [5,2,2]
    return sum(embedding(in["i"], zeros({5, 2, 2})));
  });
}

}  // namespace tensorgrad::testing
