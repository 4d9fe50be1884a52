// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(grad_norm_that_is_not_computed, UserError) {
  const Example e;
  // error: grad_norm: not computed: enable clip_grad_norm, skip_nonfinite or loss scaling
  static_cast<void>(e.trainer.grad_norm());
}

}  // namespace tensorgrad::testing
