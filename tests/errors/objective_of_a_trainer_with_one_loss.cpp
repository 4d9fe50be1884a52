// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objective_of_a_trainer_with_one_loss, UserError) {
  const Example good;
  // error: there is no objective 'a'; there is only one, without a name
  static_cast<void>(good.trainer["a"]);
}

}  // namespace tensorgrad::testing
