// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(custom_gradient_of_the_wrong_shape, ShapeError) {
  const auto loss = [](const Net& net, In in) {
    const auto twice = [](const std::vector<Tensor>& x) { return x[0] * 2.0; };
    const auto backward = [](const std::vector<Tensor>&, Tensor, Tensor dy) {
      return std::vector<Tensor>{sum(dy)};
    };
    // error: custom_gradient: the gradient of input 0 must be f32[4,3], got f32[]
    return mean(net.fc(custom_gradient({in["x"]}, twice, backward)));
  };
  compile(Net{}, loss, {.inputs = {{"x", {4, 3}}}, .optimizer = optim::SGD{}});
}

}  // namespace tensorgrad::testing
