// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(autocast_outside_of_a_traced_function, UserError) {
  // error: Autocast: ops may only be called in a function that is being traced (one given to
  // compile, compile_forward or attach)
  const Autocast mixed(true);
}

}  // namespace tensorgrad::testing
