// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(cross_entropy_weight_of_the_wrong_size, ShapeError) {
  compiled([](const Net& net, In in) {
    // error: cross_entropy: weight must be [2] for logits [4,2], got [3]
    return cross_entropy(net.fc(in["x"]), in["i"], {.weight = ones({3})});
  });
}

}  // namespace tensorgrad::testing
