// SPDX-License-Identifier: MIT
#include <limits>

#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(learning_rate_set_to_infinity, UserError) {
  Example e;
  // error: set_lr: expected a learning rate of at least 0, got inf
  e.trainer.set_lr(std::numeric_limits<double>::infinity());
}

}  // namespace tensorgrad::testing
