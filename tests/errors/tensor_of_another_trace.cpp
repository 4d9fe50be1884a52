// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(tensor_of_another_trace, UserError) {
  Tensor kept;
  compiled([&](const Net& net, In in) {
    kept = in["x"];
    return mean(net.fc(kept));
  });
  compiled([&](const Net&, In) {
    return sum(exp(kept));  // error: exp: the tensor belongs to another traced function
  });
}

}  // namespace tensorgrad::testing
