// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(linear_cross_entropy_of_minus_one_rows, UserError) {
  compiled([](const Net& net, In in) {
    // error: linear_cross_entropy: rows must be 0 or more, got -1
    return linear_cross_entropy(in["x"], net.fc.weight.tensor(), in["i"], {.rows = -1});
  });
}

}  // namespace tensorgrad::testing
