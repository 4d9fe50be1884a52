// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(capture_with_the_name_of_an_output, UserError) {
  Example e;
  // error: capture: the name 'output' is taken by an output
  e.trainer.attach([](const Net& net, In in) { return capture("output", net.fc(in["x"])); },
                   {.inputs = {{"x", {1, 3}}}});
}

}  // namespace tensorgrad::testing
