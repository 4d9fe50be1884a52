// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_that_nobody_declared, UserError) {
  Example example;
  example.feed.insert({"z", example.x});
  example.trainer.step(example.feed);  // error: there is no input 'z'; the inputs are x, y, i
}

}  // namespace tensorgrad::testing
