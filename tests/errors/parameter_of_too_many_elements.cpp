// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(parameter_of_too_many_elements, ShapeError) {
  // error: parameter: [65536,65536] has more than 2^31-1 elements, the limit of a tensor
  const Parameter huge({1 << 16, 1 << 16});
}

}  // namespace tensorgrad::testing
