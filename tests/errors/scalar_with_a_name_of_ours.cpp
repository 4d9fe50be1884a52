// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(scalar_with_a_name_of_ours, UserError) {
  compiled([](const Net&, In in) {
    // error: scalar: a name must not be empty or begin with '_', got '_lr'
    return sum(in["x"]) * scalar("_lr", 1);
  });
}

}  // namespace tensorgrad::testing
