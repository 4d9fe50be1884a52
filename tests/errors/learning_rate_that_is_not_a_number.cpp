// SPDX-License-Identifier: MIT
#include <cmath>

#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(learning_rate_that_is_not_a_number, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{.lr = std::nan("")}};
  // error: compile: expected a learning rate of at least 0, got nan
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
