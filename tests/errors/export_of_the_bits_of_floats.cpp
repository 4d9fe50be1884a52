// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_the_bits_of_floats, UserError) {
  const auto forward = compile_function(Net{},
                                        [](const Net& net, In in) {
                                          // error: export_onnx: bitcast: ONNX has no operator to
                                          // bitcast f32 to i32
                                          return bitcast(net.fc(in["x"]), i32);
                                        },
                                        {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}});
  forward.export_onnx(temporary("bits.onnx"));
}

}  // namespace tensorgrad::testing
