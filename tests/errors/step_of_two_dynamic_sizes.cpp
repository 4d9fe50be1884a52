// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(step_of_two_dynamic_sizes, ShapeError) {
  auto trainer = compiled(plain_loss, {.inputs = {{"x", {kDynamic, 3}}, {"y", {kDynamic, 2}}},
                                       .optimizer = optim::SGD{}});
  const std::vector<float> x(12), y(6);
  // error: inputs 'x' [?,3] and 'y' [?,2] have different dynamic sizes: 4 and 3
  trainer.step({{"x", x}, {"y", y}});
}

}  // namespace tensorgrad::testing
