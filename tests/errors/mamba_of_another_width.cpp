// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(mamba_of_another_width, ShapeError) {
  compiled([](const Net&, In in) {
    // error: Mamba: expected [B, L, 8], got [4,3]
    return sum(nn::Mamba(8)(in["x"]));
  });
}

}  // namespace tensorgrad::testing
