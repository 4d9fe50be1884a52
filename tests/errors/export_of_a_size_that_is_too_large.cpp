// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_a_size_that_is_too_large, ShapeError) {
  const auto placed = [](const Net& net, In in) {
    const Tensor x = in["x"];
    // error: narrow: start 0 and length 4 do not fit axis 0 of [2,3]
    return x + narrow(net.fc.weight, 0, 0, x.size(0));
  };
  const FunctionOptions options{.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu"}};
  const CompiledFunction forward = compile_function(Net{}, placed, options);
  forward.export_onnx(temporary("placed.onnx"), {.sizes = {2, 4, 8}});
}

}  // namespace tensorgrad::testing
