// SPDX-License-Identifier: MIT
#include <utility>

#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(multi_trainer_that_was_moved, UserError) {
  MultiTrainer<Net> trainer = compiled(two_objectives());
  const MultiTrainer<Net> other = std::move(trainer);
  static_cast<void>(trainer["w"]);  // error: MultiTrainer: used after it was moved from
}

}  // namespace tensorgrad::testing
