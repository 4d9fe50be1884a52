// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(trainer_that_was_moved, UserError) {
  auto trainer = compiled(plain_loss);
  const auto other = std::move(trainer);
  EXPECT_EQ(other.steps(), 0);
  trainer.step({});  // error: Trainer: used after it was moved from
}

}  // namespace tensorgrad::testing
