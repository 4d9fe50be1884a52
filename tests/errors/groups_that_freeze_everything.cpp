// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(groups_that_freeze_everything, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{},
                               .groups = {{.params = "*", .freeze = true}}};
  // error: compile: every parameter is frozen
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
