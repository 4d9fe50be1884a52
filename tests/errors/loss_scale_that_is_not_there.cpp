// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loss_scale_that_is_not_there, UserError) {
  const Example e;
  // error: loss_scale: the loss is not scaled: neither mixed_precision nor loss_scale is enabled
  static_cast<void>(e.trainer.loss_scale());
}

}  // namespace tensorgrad::testing
