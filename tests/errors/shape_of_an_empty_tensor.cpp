// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(shape_of_an_empty_tensor, UserError) {
  compiled([](const Net&, In) {
    return sum(zeros(Tensor{}.shape()));  // error: shape: the tensor is empty (default-constructed)
  });
}

}  // namespace tensorgrad::testing
