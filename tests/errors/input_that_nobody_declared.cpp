// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_that_nobody_declared, UserError) {
  Example example;
  example.feed.insert({"z", example.x});
  example.trainer.step(example.feed);  // error: unknown input 'z'; available: x, y, i
}

}  // namespace tensorgrad::testing
