// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(group_with_a_negative_factor, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{},
                               .groups = {{.params = "*", .lr_factor = -1}}};
  // error: lr_factor.*: expected a number of at least 0, got -1
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
