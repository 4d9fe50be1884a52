// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(einsum_with_a_missing_operand, ShapeError) {
  compiled([](const Net&, In in) {
    // error: einsum: the formula 'ij' has fewer operands than were passed
    return sum(einsum("ij", {in["x"], in["y"]}));
  });
}

}  // namespace tensorgrad::testing
