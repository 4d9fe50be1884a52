// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_another_function_for_a_size_of_one, UserError) {
  const auto apart = [](const Net&, In in) {
    const Tensor x = in["x"];
    if (x.size(0) == 1) return x;
    // error: export_onnx: exp: the operations traced for a dynamic size of 1 differ from those for
    // larger sizes; set OnnxOptions::sizes to ignore size 1
    return exp(x);
  };
  const FunctionOptions options{.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu"}};
  compile_function(Net{}, apart, options).export_onnx(temporary("apart.onnx"));
}

}  // namespace tensorgrad::testing
