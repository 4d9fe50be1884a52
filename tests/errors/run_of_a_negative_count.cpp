// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(run_of_a_negative_count, UserError) {
  CompileOptions options{
      .dataset = {{"x", {8, 3}}, {"y", {8, 2}}}, .batch = 4, .optimizer = optim::SGD{}};
  auto trainer = compiled(plain_loss, options);
  trainer.run(-5);  // error: run: expected at least 0 steps, got -5
}

}  // namespace tensorgrad::testing
