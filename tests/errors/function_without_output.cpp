// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(function_without_output, UserError) {
  const auto nothing = [](const Net&, In) { return std::map<std::string, Tensor>{}; };
  // error: forward: the traced function gives no output
  compile_forward(Net{}, nothing, {.device = {.kind = "cpu"}});
}

}  // namespace tensorgrad::testing
