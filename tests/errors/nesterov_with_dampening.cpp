// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(nesterov_with_dampening, UserError) {
  const CompileOptions options{.optimizer =
                                   optim::SGD{.momentum = 0.9, .nesterov = true, .dampening = 0.1}};
  // error: SGD: nesterov requires momentum and zero dampening
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
