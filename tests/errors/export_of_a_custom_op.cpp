// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_a_custom_op, UserError) {
  const CustomOp twice({.name = "twice",
                        .infer = [](const std::vector<TensorType>& in) { return in[0]; },
                        .wgsl =
                            [](const std::vector<TensorType>&) {
                              return "fn element(i: u32) -> f32 { return 2.0 * in0(i); }";
                            }});
  const auto forward = compile_function(Net{},
                                        [&](const Net& net, In in) {
                                          // error: export_onnx: twice: an op with a custom kernel
                                          // cannot be exported
                                          return twice({net.fc(in["x"])});
                                        },
                                        {.inputs = {{"x", {4, 3}}}, .device = {.kind = "null"}});
  forward.export_onnx(temporary("custom.onnx"));
}

}  // namespace tensorgrad::testing
