// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(custom_gradient_for_too_few_inputs, UserError) {
  const auto loss = [](const Net& net, In in) {
    const auto twice = [](const std::vector<Tensor>& x) { return x[0] * 2.0; };
    const auto backward = [](const std::vector<Tensor>&, Tensor, Tensor) {
      return std::vector<Tensor>{};
    };
    // error: custom_gradient: backward must return one gradient for each of the 1 inputs, got 0
    return mean(net.fc(custom_gradient({in["x"]}, twice, backward)));
  };
  compile(Net{}, loss, {.inputs = {{"x", {4, 3}}}, .optimizer = optim::SGD{}});
}

}  // namespace tensorgrad::testing
