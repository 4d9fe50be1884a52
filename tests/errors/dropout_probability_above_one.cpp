// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(dropout_probability_above_one, UserError) {
  compiled([](const Net&, In in) {
    // error: dropout: the probability must be in [0, 1], got 1.5
    return sum(dropout(in["x"], 1.5));
  });
}

}  // namespace tensorgrad::testing
