// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_as_many_steps_as_the_open_size, UserError) {
  const auto steps = [](const Net&, In in) {
    Tensor x = in["x"];
    const std::int64_t count = x.size(0);
    for (std::int64_t i = 0; i < count; ++i) {
      // error: export_onnx: sin: the traces for open sizes of 3 and 7 differ in more than sizes;
      // OnnxOptions::sizes says which are traced
      x = sin(x);
    }
    return x;
  };
  const ForwardOptions options{.inputs = {{"x", {kOpen, 3}}}, .device = {.kind = "cpu"}};
  const Forward forward = compile_forward(Net{}, steps, options);
  forward.export_onnx(temporary("steps.onnx"), {.sizes = {3, 7, 10}});
}

}  // namespace tensorgrad::testing
