// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(tensor_of_another_device, UserError) {
  Example example;
  const auto twice = [](const Net& net, In in) { return in["x"] * 2.0 + sum(net.fc.weight) * 0.0; };
  CompiledFunction forward =
      compile_function(Net{}, twice, {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}});
  const DeviceTensor x = forward.run_on_device({{"x", example.x}}).at("output");
  // error: input 'x': the tensor is on another device, ...
  example.trainer.step({{"x", x}, {"y", example.y}, {"i", example.i}});
}

}  // namespace tensorgrad::testing
