// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_a_state_that_changes, UserError) {
  const auto forward = compile_function(Net{},
                                        [](const Net& net, In in) {
                                          const Tensor runs = state("runs", {});
                                          // error: export_onnx: the state 'runs' is updated, but an
                                          // ONNX model keeps no state between runs; set
                                          // OnnxOptions::states to export it as an input and an
                                          // output
                                          set_state("runs", runs + 1.0);
                                          return net.fc(in["x"]) + runs;
                                        },
                                        {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}});
  forward.export_onnx(temporary("state.onnx"));
}

}  // namespace tensorgrad::testing
