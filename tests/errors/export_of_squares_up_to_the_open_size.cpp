// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_squares_up_to_the_open_size, UserError) {
  const auto weighted = [](const Net&, In in) {
    const Tensor x = in["x"];
    std::vector<float> squares;
    for (std::int64_t i = 0; i < x.size(0); ++i) squares.push_back(static_cast<float>(i * i));
    // error: export_onnx: mul: a constant is [3] for a dynamic size of 3 and [7] for a dynamic size
    // of 7; expected a * size + b evenly spaced integers along one of its axes
    return x * constant(squares, {x.size(0)});
  };
  const FunctionOptions options{.inputs = {{"x", {kDynamic}}}, .device = {.kind = "cpu"}};
  compile_function(Net{}, weighted, options).export_onnx(temporary("squares.onnx"));
}

}  // namespace tensorgrad::testing
