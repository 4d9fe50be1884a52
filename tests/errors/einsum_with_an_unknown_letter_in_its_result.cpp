// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(einsum_with_an_unknown_letter_in_its_result, ShapeError) {
  compiled([](const Net&, In in) {
    // error: einsum: the formula 'ij->ik' has a letter in its result that no operand has
    return sum(einsum("ij->ik", {in["x"]}));
  });
}

}  // namespace tensorgrad::testing
