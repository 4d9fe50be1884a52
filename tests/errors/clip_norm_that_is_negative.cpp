// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(clip_norm_that_is_negative, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{}, .clip_grad_norm = -1};
  compiled(plain_loss, options);  // error: clip_grad_norm: expected more than 0, got -1
}

}  // namespace tensorgrad::testing
