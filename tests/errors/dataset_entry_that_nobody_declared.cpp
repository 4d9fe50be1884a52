// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(dataset_entry_that_nobody_declared, UserError) {
  const CompileOptions options{
      .dataset = {{"x", {8, 3}}, {"y", {8, 2}}}, .batch = 4, .optimizer = optim::SGD{}};
  auto trainer = compiled(plain_loss, options);
  const std::vector<float> z(24);
  trainer.upload_data("z", z);  // error: unknown dataset entry 'z'; available: x, y
}

}  // namespace tensorgrad::testing
