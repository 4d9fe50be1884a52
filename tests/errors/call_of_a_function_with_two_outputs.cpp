// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(call_of_a_function_with_two_outputs, UserError) {
  const auto both = [](const Net& net, In in) {
    const Tensor y = net.fc(in["x"]);
    return std::map<std::string, Tensor>{{"y", y}, {"mean", mean(y)}};
  };
  auto forward =
      compile_function(Net{}, both, {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}});
  const Example example;
  forward({{"x", example.x}});  // error: the function has 2 outputs, not one; use run()
}

}  // namespace tensorgrad::testing
