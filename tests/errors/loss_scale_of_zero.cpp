// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loss_scale_of_zero, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{}, .loss_scale = LossScale{.init_scale = 0}};
  // error: loss_scale: init_scale: expected a number between 2^-100 and 2^100, got 0
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
