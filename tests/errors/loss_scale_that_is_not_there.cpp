// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loss_scale_that_is_not_there, UserError) {
  const Example e;
  // error: loss_scale: the loss has no factor: neither mixed_precision nor loss_scale is on
  static_cast<void>(e.trainer.loss_scale());
}

}  // namespace tensorgrad::testing
