// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_more_outputs_from_some_open_size_on, UserError) {
  const auto some = [](const Net&, In in) {
    const Tensor x = in["x"];
    std::map<std::string, Tensor> outputs = {{"all", exp(x)}};
    if (x.size(0) > 50) outputs["first"] = narrow(x, 0, 0, 50);
    return outputs;
  };
  const FunctionOptions options{.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu"}};
  const CompiledFunction forward = compile_function(Net{}, some, options);
  // error: export_onnx: the outputs for dynamic sizes 3 and 54 differ in more than sizes
  forward.export_onnx(temporary("outputs.onnx"));
}

}  // namespace tensorgrad::testing
