// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_of_bool, DtypeError) {
  const CompileOptions options{.inputs = {{"x", {4, 3}, boolean}}, .optimizer = optim::SGD{}};
  // error: input 'x': expected f32, f16, i32 or u32, got bool; compute booleans inside the function
  compile(Net{}, plain_loss, options);
}

}  // namespace tensorgrad::testing
