// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(op_outside_of_a_traced_function, UserError) {
  // error: full: ops may only be called in a function that is being traced (one given to compile,
  // compile_forward or attach)
  static_cast<void>(full({2}, 1));
}

}  // namespace tensorgrad::testing
