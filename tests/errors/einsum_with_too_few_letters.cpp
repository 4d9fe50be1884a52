// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(einsum_with_too_few_letters, ShapeError) {
  compiled([](const Net&, In in) {
    // error: einsum: the formula 'i,ij' does not match an operand with 2 axes
    return sum(einsum("i,ij", {in["x"], in["y"]}));
  });
}

}  // namespace tensorgrad::testing
