// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(orthogonal_values_for_a_bias, ShapeError) {
  CompileOptions options{.optimizer = optim::SGD{}};
  options.initial = [](const std::string&, const Shape&) { return init::orthogonal(); };
  // error: the initial values of 'fc.bias': init::orthogonal requires at least two axes, got [2]
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
