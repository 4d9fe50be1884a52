// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(cross_entropy_targets_of_the_wrong_shape, ShapeError) {
  compiled([](const Net&, In in) {
    // error: cross_entropy: targets must be [3] for logits [3,4], got [4]
    return cross_entropy(transpose(in["x"]), in["i"]);
  });
}

}  // namespace tensorgrad::testing
