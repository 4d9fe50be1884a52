// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(dataset_without_rows, UserError) {
  const CompileOptions options{.dataset = {{"x", {0, 3}}}, .batch = 1, .optimizer = optim::SGD{}};
  // error: dataset: the batch must be between 1 and 0, the number of rows, got 1
  compile(Net{}, plain_loss, options);
}

}  // namespace tensorgrad::testing
