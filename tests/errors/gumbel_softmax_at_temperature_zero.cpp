// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(gumbel_softmax_at_temperature_zero, UserError) {
  compiled([](const Net&, In in) {
    // error: gumbel_softmax: tau must be more than 0, got 0
    return sum(gumbel_softmax(in["x"], 0));
  });
}

}  // namespace tensorgrad::testing
