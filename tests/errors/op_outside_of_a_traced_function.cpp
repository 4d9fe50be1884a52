// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(op_outside_of_a_traced_function, UserError) {
  // error: full: ops may only be called inside a traced function (one passed to compile,
  // compile_function or attach)
  static_cast<void>(full({2}, 1));
}

}  // namespace tensorgrad::testing
