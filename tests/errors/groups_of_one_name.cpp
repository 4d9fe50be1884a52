// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(groups_of_one_name, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{},
                               .groups = {{.params = "*"}, {.params = "*"}}};
  // error: groups: two groups are named '*'
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
