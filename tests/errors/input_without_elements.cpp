// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_without_elements, ShapeError) {
  Example example;
  const std::vector<float> nothing;
  example.feed.insert_or_assign("x", nothing);
  example.trainer.step(example.feed);  // error: input 'x': [4,3] has 12 elements, got 0
}

}  // namespace tensorgrad::testing
