// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(bernoulli_of_more_than_one, UserError) {
  compiled([](const Net&, In) {
    // error: bernoulli: the probability must be in [0, 1], got 1.5
    return mean(bernoulli({2}, 1.5));
  });
}

}  // namespace tensorgrad::testing
