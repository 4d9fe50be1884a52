// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(repeat_with_too_few_counts, ShapeError) {
  compiled([](const Net&, In in) {
    // error: repeat: expected one count per axis of [4,3], got 1
    return sum(repeat(in["x"], {2}));
  });
}

}  // namespace tensorgrad::testing
