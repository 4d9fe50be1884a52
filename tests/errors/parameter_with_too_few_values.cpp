// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(parameter_with_too_few_values, ShapeError) {
  // error: parameter: [3] has 3 elements, got 2 values
  const Parameter weight({3}, init::literal({1, 2}));
}

}  // namespace tensorgrad::testing
