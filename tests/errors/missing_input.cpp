// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(missing_input, UserError) {
  Example example;
  example.feed.erase("y");
  example.trainer.step(example.feed);  // error: input 'y' is missing; expected inputs: x, y, i
}

}  // namespace tensorgrad::testing
