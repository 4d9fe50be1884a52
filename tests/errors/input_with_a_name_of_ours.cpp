// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_with_a_name_of_ours, UserError) {
  const CompileOptions options{.inputs = {{"_order", {4, 3}}}, .optimizer = optim::SGD{}};
  // error: input names must not be empty or begin with '_', got '_order'
  compile(Net{}, plain_loss, options);
}

}  // namespace tensorgrad::testing
