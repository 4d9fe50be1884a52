// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(cosine_embedding_targets_of_another_shape, ShapeError) {
  compiled([](const Net& net, In in) {
    // error: cosine_embedding_loss: shapes differ: cosines [4], targets [4,2]
    return cosine_embedding_loss(net.fc(in["x"]), in["y"], in["y"]);
  });
}

}  // namespace tensorgrad::testing
