// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_of_size_zero, ShapeError) {
  const CompileOptions options{.inputs = {{"x", {0, 3}}}, .optimizer = optim::SGD{}};
  compile(Net{}, plain_loss, options);  // error: input: every size must be at least 1, got [0,3]
}

}  // namespace tensorgrad::testing
