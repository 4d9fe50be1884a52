// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(batch_without_a_dataset, UserError) {
  const CompileOptions options{.inputs = {{"x", {8, 3}}}, .batch = 8, .optimizer = optim::SGD{}};
  // error: batch: it is the rows of a dataset taken for a step, and no dataset is declared; got 8
  compile(Net{}, plain_loss, options);
}

}  // namespace tensorgrad::testing
