// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_dropout_in_training, UserError) {
  const auto forward =
      compile_function(Net{},
                       [](const Net& net, In in) {
                         // error: export_onnx: dropout: random numbers cannot be exported
                         return dropout(net.fc(in["x"]), 0.5);
                       },
                       {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}, .training = true});
  forward.export_onnx(temporary("dropout.onnx"));
}

}  // namespace tensorgrad::testing
