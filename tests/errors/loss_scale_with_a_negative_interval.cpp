// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loss_scale_with_a_negative_interval, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{},
                               .loss_scale = LossScale{.growth_interval = -1}};
  // error: loss_scale: growth_interval: expected at least 0, got -1
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
