// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(clip_value_that_is_negative, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{}, .clip_grad_value = -1};
  // error: clip_grad_value: expected more than 0, got -1
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
