// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(pad_by_a_negative_amount, ShapeError) {
  compiled([](const Net&, In in) {
    return sum(pad(in["x"], {-1, 0}));  // error: pad: padding must not be negative
  });
}

}  // namespace tensorgrad::testing
