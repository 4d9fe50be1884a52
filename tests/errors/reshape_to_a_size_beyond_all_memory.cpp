// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(reshape_to_a_size_beyond_all_memory, ShapeError) {
  compiled([](const Net&, In in) {
    const Shape huge = {1LL << 40, 1LL << 40};
    // error: reshape: [1099511627776,1099511627776] has more than 2^31-1 elements, the limit of a
    // tensor
    return sum(reshape(in["x"], huge));
  });
}

}  // namespace tensorgrad::testing
