// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(dataset_that_was_not_given, UserError) {
  const CompileOptions options{
      .dataset = {{"x", {8, 3}}, {"y", {8, 2}}}, .batch = 4, .optimizer = optim::SGD{}};
  auto trainer = compiled(plain_loss, options);
  trainer.upload_data("x", std::vector<float>(24));
  trainer.run(1);  // error: dataset entry 'y' has no data; call upload_data()
}

}  // namespace tensorgrad::testing
