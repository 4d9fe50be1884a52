// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(memory_budget_that_is_too_small, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{}, .memory_budget = 1000};
  // error: memory budget: the plan needs # bytes, the budget is 1000; the largest tensors are
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
