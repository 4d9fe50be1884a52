// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(capture_of_a_name_that_is_taken, UserError) {
  compiled([](const Net&, In in) {
    capture("h", in["x"]);
    return sum(capture("h", in["y"]));  // error: capture: capture 'h' already exists
  });
}

}  // namespace tensorgrad::testing
