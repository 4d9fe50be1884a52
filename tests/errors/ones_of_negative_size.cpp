// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(ones_of_negative_size, ShapeError) {
  compiled([](const Net&, In in) {
    return sum(in["x"]) + sum(ones({-2}));  // error: ones: every size must be at least 1, got [-2]
  });
}

}  // namespace tensorgrad::testing
