// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(pad_by_an_overflowing_amount, ShapeError) {
  compiled([](const Net&, In in) {
    // error: pad: padding is above 2^31-1
    return sum(pad(in["x"], {INT64_MAX, INT64_MAX}));
  });
}

}  // namespace tensorgrad::testing
