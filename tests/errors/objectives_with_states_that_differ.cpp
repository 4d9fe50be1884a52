// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objectives_with_states_that_differ, UserError) {
  auto objectives = two_objectives();
  for (const double initial : {0, 1}) {
    objectives[initial == 0 ? 0 : 1].loss = [initial](const Net& net, In in) {
      return plain_loss(net, in) + state("bias", {}, initial);
    };
  }
  // error: state 'bias': objectives 'w' and 'b' disagree on its type or initial value
  compiled(objectives);
}

}  // namespace tensorgrad::testing
