// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(submit_of_a_negative_count, UserError) {
  CompileOptions options{
      .dataset = {{"x", {8, 3}}, {"y", {8, 2}}}, .batch = 4, .optimizer = optim::SGD{}};
  auto trainer = compiled(plain_loss, options);
  trainer.run(-5);  // error: submit: -5 steps cannot be queued
}

}  // namespace tensorgrad::testing
