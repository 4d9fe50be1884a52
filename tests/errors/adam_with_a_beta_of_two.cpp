// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(adam_with_a_beta_of_two, UserError) {
  const CompileOptions options{.optimizer = optim::Adam{.beta1 = 2}};
  // error: Adam: beta1: expected at least 0 and less than 1, got 2
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
