// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(bound_input_of_a_dynamic_size, UserError) {
  auto trainer = compiled(plain_loss, {.inputs = {{"x", {kDynamic, 3}}, {"y", {kDynamic, 2}}},
                                       .optimizer = optim::SGD{}});
  // error: bind_input: not supported for a dynamic size, as each size has its own buffers
  trainer.bind_input("x", nullptr);
}

}  // namespace tensorgrad::testing
