// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(submit_while_looking_for_nan, UserError) {
  const CompileOptions options{.dataset = {{"x", {8, 3}}, {"y", {8, 2}}},
                               .batch = 4,
                               .optimizer = optim::SGD{},
                               .detect_nan = true};
  auto trainer = compiled(plain_loss, options);
  trainer.upload_data("x", std::vector<float>(24));
  trainer.upload_data("y", std::vector<float>(16));
  trainer.submit(1);  // error: submit: not supported with detect_nan; call step()
}

}  // namespace tensorgrad::testing
