// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_half_of_an_open_size, UserError) {
  const auto half = [](const Net&, In in) {
    // error: export_onnx: chunk: a number is 2 for a dynamic size of 3 and 4 for a dynamic size of
    // 7; expected a * size + b with integers a and b, or 1 / (a * size + b)
    return chunk(in["x"], 2)[0];
  };
  const FunctionOptions options{.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu"}};
  compile_function(Net{}, half, options)
      .export_onnx(temporary("half.onnx"), {.sizes = {3, 7, 10, 12}});
}

}  // namespace tensorgrad::testing
