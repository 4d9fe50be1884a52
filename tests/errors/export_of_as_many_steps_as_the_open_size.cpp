// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_as_many_steps_as_the_open_size, UserError) {
  const auto steps = [](const Net&, In in) {
    Tensor x = in["x"];
    const std::int64_t count = x.size(0);
    for (std::int64_t i = 0; i < count; ++i) {
      // error: export_onnx: sin: the traces for dynamic sizes 3 and 7 differ in more than sizes;
      // OnnxOptions::sizes sets the traced sizes
      x = sin(x);
    }
    return x;
  };
  const FunctionOptions options{.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu"}};
  const CompiledFunction forward = compile_function(Net{}, steps, options);
  forward.export_onnx(temporary("steps.onnx"), {.sizes = {3, 7, 10}});
}

}  // namespace tensorgrad::testing
