// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(full_of_too_many_elements, ShapeError) {
  compiled([](const Net&, In) {
    // error: full: [65536,65536] has more than 2^31-1 elements, the limit of a tensor
    return sum(full({1 << 16, 1 << 16}, 1));
  });
}

}  // namespace tensorgrad::testing
