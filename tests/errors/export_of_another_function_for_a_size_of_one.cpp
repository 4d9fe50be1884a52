// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_another_function_for_a_size_of_one, UserError) {
  const auto apart = [](const Net&, In in) {
    const Tensor x = in["x"];
    if (x.size(0) == 1) return x;
    // error: export_onnx: exp: other operations are traced for an open size of 1 than for larger
    // ones; with OnnxOptions::sizes that one is not looked at
    return exp(x);
  };
  const ForwardOptions options{.inputs = {{"x", {kOpen, 3}}}, .device = {.kind = "cpu"}};
  compile_forward(Net{}, apart, options).export_onnx(temporary("apart.onnx"));
}

}  // namespace tensorgrad::testing
