// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(initial_values_of_another_count, ShapeError) {
  CompileOptions options{.optimizer = optim::SGD{}};
  options.initial = [](const std::string&, const Shape&) {
    return init::literal({1, 2, 3, 4, 5, 6});
  };
  // error: the initial values of 'fc.bias': [2] has 2 elements, got 6 values
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
