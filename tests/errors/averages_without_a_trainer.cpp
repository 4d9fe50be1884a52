// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(averages_without_a_trainer, UserError) {
  // error: compile_function: only a trainer has averages; use attach()
  compile_function(Net{}, [](const Net& net, In in) { return net.fc(in["x"]); },
                   {.inputs = {{"x", {1, 3}}}, .weights = WeightSource::kEma});
}

}  // namespace tensorgrad::testing
