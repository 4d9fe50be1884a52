// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(causal_conv1d_with_the_wrong_channels, ShapeError) {
  compiled([](const Net&, In in) {
    const Tensor x = unsqueeze(in["x"], 0);
    // error: causal_conv1d: expected weight [3, K] with K of at least 2, got [4,2]
    return sum(causal_conv1d(x, in["y"]).y);
  });
}

}  // namespace tensorgrad::testing
