// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(parameter_without_elements, ShapeError) {
  const Parameter empty({0, 2});  // error: parameter: every size must be at least 1, got [0,2]
}

}  // namespace tensorgrad::testing
