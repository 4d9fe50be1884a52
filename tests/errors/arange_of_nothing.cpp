// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(arange_of_nothing, ShapeError) {
  compiled([](const Net&, In) {
    return sum(cast(arange(0), f32));  // error: arange: every size must be at least 1, got [0]
  });
}

}  // namespace tensorgrad::testing
