// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(open_size_in_training, ShapeError) {
  const CompileOptions options{.inputs = {{"x", {kOpen, 3}}}, .optimizer = optim::SGD{}};
  // error: input 'x': [?,3] has an open size, which only functions that do not train may have
  compile(Net{}, plain_loss, options);
}

}  // namespace tensorgrad::testing
