// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(function_without_output, UserError) {
  const auto nothing = [](const Net&, In) { return std::map<std::string, Tensor>{}; };
  // error: the traced function returns no output
  compile_function(Net{}, nothing, {.device = {.kind = "cpu"}});
}

}  // namespace tensorgrad::testing
