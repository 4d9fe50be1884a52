// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loss_scale_that_grows_by_falling, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{},
                               .loss_scale = LossScale{.backoff_factor = 2}};
  // error: loss_scale: backoff_factor: expected more than 0 and at most 1, got 2
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
