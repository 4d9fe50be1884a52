// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(normalize_grads_that_picks_nothing, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{}, .normalize_grads = "w"};
  // error: normalize_grads: no parameter matches; available: fc.weight, fc.bias
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
