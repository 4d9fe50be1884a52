// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loss_scale_that_does_not_grow, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{},
                               .loss_scale = LossScale{.growth_factor = 1}};
  // error: loss_scale: growth_factor: expected more than 1, got 1
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
