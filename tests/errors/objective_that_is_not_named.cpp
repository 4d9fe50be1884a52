// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objective_that_is_not_named, UserError) {
  auto trainer = compiled(two_objectives());
  const std::vector<float> x(12), y(8);
  // error: the trainer has several objectives: ask trainer[NAME] for it, NAME being w, b
  trainer.step({{"x", x}, {"y", y}});
}

}  // namespace tensorgrad::testing
