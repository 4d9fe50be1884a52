// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(orthogonal_vector, ShapeError) {
  compiled([](const Net&, In) {
    // error: parameter: init::orthogonal requires at least two axes, got [3]
    return sum(Parameter({3}, init::orthogonal()).tensor());
  });
}

}  // namespace tensorgrad::testing
