// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_with_too_few_elements, ShapeError) {
  Example example;
  example.feed.at("x").count = 11;
  example.trainer.step(example.feed);  // error: input 'x': [4,3] has 12 elements, got 11
}

}  // namespace tensorgrad::testing
