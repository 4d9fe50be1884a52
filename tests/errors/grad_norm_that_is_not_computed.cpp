// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(grad_norm_that_is_not_computed, UserError) {
  const Example e;
  // error: grad_norm: not computed: neither clip_grad_norm nor skip_nonfinite is enabled
  static_cast<void>(e.trainer.grad_norm());
}

}  // namespace tensorgrad::testing
