// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_two_values_of_one_name, UserError) {
  const auto forward = compile_function(
      Net{},
      [](const Net& net, In in) { return std::map<std::string, Tensor>{{"x", net.fc(in["x"])}}; },
      {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}});
  // error: export_onnx: the output 'x' has the name of another input, output, parameter or state
  forward.export_onnx(temporary("names.onnx"));
}

}  // namespace tensorgrad::testing
