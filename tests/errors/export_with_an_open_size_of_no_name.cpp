// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_with_an_open_size_of_no_name, UserError) {
  const auto twice = [](const Net&, In in) { return in["x"] * 2.0; };
  const ForwardOptions options{.inputs = {{"x", {kOpen, 3}}}, .device = {.kind = "cpu"}};
  const Forward forward = compile_forward(Net{}, twice, options);
  // error: export_onnx: OnnxOptions::size_name is empty; expected what to call the size
  forward.export_onnx(temporary("name.onnx"), {.size_name = ""});
}

}  // namespace tensorgrad::testing
