// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(parameter_of_too_many_elements, ShapeError) {
  // error: parameter: [65536,65536] has more than 2^31-1 elements, which is the most a tensor can
  // have
  const Parameter huge({1 << 16, 1 << 16});
}

}  // namespace tensorgrad::testing
