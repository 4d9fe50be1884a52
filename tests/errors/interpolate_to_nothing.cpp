// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(interpolate_to_nothing, ShapeError) {
  compiled([](const Net&, In) {
    // error: interpolate: every size must be at least 1, got [0,4]
    return sum(interpolate(zeros({1, 1, 2, 2}), {0, 4}));
  });
}

}  // namespace tensorgrad::testing
