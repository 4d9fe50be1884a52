// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(einsum_with_a_digit, ShapeError) {
  compiled([](const Net&, In in) {
    // error: einsum: the formula 'i1->i' contains the invalid character '1'
    return sum(einsum("i1->i", {in["x"]}));
  });
}

}  // namespace tensorgrad::testing
