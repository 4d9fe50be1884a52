// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(binary_cross_entropy_with_a_pos_weight, UserError) {
  compiled([](const Net& net, In in) {
    // error: binary_cross_entropy: pos_weight requires binary_cross_entropy_with_logits
    return binary_cross_entropy(sigmoid(net.fc(in["x"])), in["y"], {.pos_weight = ones({2})});
  });
}

}  // namespace tensorgrad::testing
