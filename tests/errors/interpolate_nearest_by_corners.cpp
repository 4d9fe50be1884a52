// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(interpolate_nearest_by_corners, UserError) {
  compiled([](const Net&, In) {
    // error: interpolate: align_corners is only supported for bilinear interpolation
    return sum(interpolate(zeros({1, 1, 4, 4}), 8, Interpolation::kNearest, true));
  });
}

}  // namespace tensorgrad::testing
