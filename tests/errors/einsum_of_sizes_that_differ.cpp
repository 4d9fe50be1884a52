// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(einsum_of_sizes_that_differ, ShapeError) {
  compiled([](const Net&, In in) {
    // error: einsum: 'j' has sizes 3 and 2
    return sum(einsum("ij,kj", {in["x"], in["y"]}));
  });
}

}  // namespace tensorgrad::testing
