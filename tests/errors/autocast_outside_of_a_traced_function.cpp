// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(autocast_outside_of_a_traced_function, UserError) {
  // error: Autocast: ops may only be called inside a traced function (one passed to compile,
  // compile_function or attach)
  const Autocast mixed(true);
}

}  // namespace tensorgrad::testing
