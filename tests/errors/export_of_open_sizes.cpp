// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_open_sizes, UserError) {
  const auto twice = [](const Net&, const Inputs& in) { return in["x"] * 2.0; };
  const ForwardOptions options{.inputs = {{"x", {kOpen, 3}}}, .device = {.kind = "cpu"}};
  const Forward forward = compile_forward(Net{}, twice, options);
  // error: export_onnx: inputs of open sizes; attach the function with sizes
  forward.export_onnx("model.onnx");
}

}  // namespace tensorgrad::testing
