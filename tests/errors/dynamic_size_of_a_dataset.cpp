// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(dynamic_size_of_a_dataset, UserError) {
  // error: dataset: 'x' has a dynamic size; only inputs passed to each step can have one
  compiled(
      plain_loss,
      {.dataset = {{"x", {kDynamic, 3}}, {"y", {8, 2}}}, .batch = 4, .optimizer = optim::SGD{}});
}

}  // namespace tensorgrad::testing
