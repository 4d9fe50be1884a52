// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_for_pages_of_a_custom_op_without_wgsl, UserError) {
  const CustomOp twice({.name = "twice",
                        .infer = [](const std::vector<TensorType>& in) { return in[0]; },
                        .cpu = [](const CustomCall&) {}});
  const auto forward = compile_function(Net{},
                                        [&](const Net& net, In in) {
                                          // error: custom op 'twice' has no WGSL body
                                          return twice({net.fc(in["x"])});
                                        },
                                        {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}});
  forward.export_web(temporary("custom"));
}

}  // namespace tensorgrad::testing
