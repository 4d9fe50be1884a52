// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(open_size_in_training, ShapeError) {
  const CompileOptions options{.inputs = {{"x", {kDynamic, 3}}}, .optimizer = optim::SGD{}};
  // error: input 'x': [?,3] has a dynamic size, which training does not support
  compile(Net{}, plain_loss, options);
}

}  // namespace tensorgrad::testing
