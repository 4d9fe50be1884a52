// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

// The element count is right, but the shape is not.
MISTAKE(input_of_another_shape, ShapeError) {
  Example example;
  const HostTensor turned = HostTensor::from({3, 4}, example.x);
  example.feed.at("x") = turned;
  example.trainer.step(example.feed);  // error: input 'x': expected [4,3], got [3,4]
}

}  // namespace tensorgrad::testing
