// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(dataset_of_different_lengths, ShapeError) {
  const CompileOptions options{
      .dataset = {{"x", {8, 3}}, {"y", {7, 2}}}, .batch = 4, .optimizer = optim::SGD{}};
  // error: dataset: 'x' [8,3] and 'y' [7,2] must have the same number of rows
  compile(Net{}, plain_loss, options);
}

}  // namespace tensorgrad::testing
