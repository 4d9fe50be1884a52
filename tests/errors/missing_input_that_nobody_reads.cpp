// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(missing_input_that_nobody_reads, UserError) {
  Example example;
  example.feed.erase("i");
  example.trainer.step(example.feed);  // error: input 'i' is missing; expected inputs: x, y, i
}

}  // namespace tensorgrad::testing
