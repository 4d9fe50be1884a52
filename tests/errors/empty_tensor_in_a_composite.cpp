// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(empty_tensor_in_a_composite, UserError) {
  compiled([](const Net&, In in) {
    return mse(Tensor{}, in["y"]);  // error: mse: the tensor is empty (default-constructed)
  });
}

}  // namespace tensorgrad::testing
