// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(squeeze_of_a_full_axis, ShapeError) {
  compiled([](const Net&, In in) {
    return sum(squeeze(in["x"], 0));  // error: squeeze: axis 0 of [4,3] does not have size 1
  });
}

}  // namespace tensorgrad::testing
