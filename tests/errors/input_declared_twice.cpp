// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_declared_twice, UserError) {
  const CompileOptions options{.inputs = {{"x", {4, 3}}, {"x", {4, 2}}}, .optimizer = optim::SGD{}};
  compile(Net{}, plain_loss, options);  // error: input 'x' is declared twice
}

}  // namespace tensorgrad::testing
