// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(batch_larger_than_the_dataset, UserError) {
  const CompileOptions options{.dataset = {{"x", {8, 3}}}, .batch = 9, .optimizer = optim::SGD{}};
  // error: dataset: the batch must be between 1 and 8, the number of rows, got 9
  compile(Net{}, plain_loss, options);
}

}  // namespace tensorgrad::testing
