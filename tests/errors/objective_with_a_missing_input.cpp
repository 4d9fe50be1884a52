// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objective_with_a_missing_input, UserError) {
  auto trainer = compiled(two_objectives());
  const std::vector<float> x(12);
  trainer["w"].step({{"x", x}});  // error: input 'y' is missing; expected inputs: x, y
}

}  // namespace tensorgrad::testing
