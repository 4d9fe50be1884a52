// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(group_that_picks_nothing, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{}, .groups = {{.params = "*.biass"}}};
  // error: group '*.biass': no parameter matches; available: fc.weight, fc.bias
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
