// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(host_tensor_with_too_few_elements, ShapeError) {
  const std::vector<float> values(5);
  // error: host tensor: [2,3] has 6 elements, got 5
  HostTensor::from({2, 3}, values);
}

}  // namespace tensorgrad::testing
