// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(dataset_without_rows, UserError) {
  const CompileOptions options{.dataset = {{"x", {0, 3}}}, .batch = 1, .optimizer = optim::SGD{}};
  // error: dataset: the batch must be between 1 and the 0 rows, got 1
  compile(Net{}, plain_loss, options);
}

}  // namespace tensorgrad::testing
