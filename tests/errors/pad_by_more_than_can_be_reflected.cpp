// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(pad_by_more_than_can_be_reflected, ShapeError) {
  compiled([](const Net&, In in) {
    // error: pad: axis 1 of [4,3] has 2 elements to pad with, got 3
    return sum(pad(in["x"], {3, 0}, PadMode::kReflect));
  });
}

}  // namespace tensorgrad::testing
