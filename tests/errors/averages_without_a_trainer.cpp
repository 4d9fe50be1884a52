// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(averages_without_a_trainer, UserError) {
  // error: compile_forward: averages are a trainer's; use attach()
  compile_forward(Net{}, [](const Net& net, In in) { return net.fc(in["x"]); },
                  {.inputs = {{"x", {1, 3}}}, .weights = Weights::kEma});
}

}  // namespace tensorgrad::testing
