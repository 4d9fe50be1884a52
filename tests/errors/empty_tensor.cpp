// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(empty_tensor, UserError) {
  compiled([](const Net&, In) {
    return sum(exp(Tensor{}));  // error: exp: the tensor is empty (default-constructed)
  });
}

}  // namespace tensorgrad::testing
