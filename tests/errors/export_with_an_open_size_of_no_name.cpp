// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_with_an_open_size_of_no_name, UserError) {
  const auto twice = [](const Net&, In in) { return in["x"] * 2.0; };
  const FunctionOptions options{.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu"}};
  const CompiledFunction forward = compile_function(Net{}, twice, options);
  // error: export_onnx: OnnxOptions::size_name is empty; expected a name for the dynamic size
  forward.export_onnx(temporary("name.onnx"), {.size_name = ""});
}

}  // namespace tensorgrad::testing
