// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(batch_without_a_dataset, UserError) {
  const CompileOptions options{.inputs = {{"x", {8, 3}}}, .batch = 8, .optimizer = optim::SGD{}};
  // error: batch is set to 8, but no dataset is declared
  compile(Net{}, plain_loss, options);
}

}  // namespace tensorgrad::testing
