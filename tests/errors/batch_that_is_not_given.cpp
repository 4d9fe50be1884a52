// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(batch_that_is_not_given, UserError) {
  const CompileOptions options{.dataset = {{"x", {8, 3}}}, .optimizer = optim::SGD{}};
  // error: dataset: the batch must be between 1 and 8, the number of rows, got 0
  compile(Net{}, plain_loss, options);
}

}  // namespace tensorgrad::testing
