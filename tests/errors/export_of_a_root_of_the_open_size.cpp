// SPDX-License-Identifier: MIT
#include <cmath>

#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_a_root_of_the_open_size, UserError) {
  const auto scaled = [](const Net&, In in) {
    const Tensor x = in["x"];
    const double root = std::sqrt(static_cast<double>(x.size(0)));
    // error: export_onnx: mul: a number is 1.732050776 for a dynamic size of 3 and 2.645751238 for
    // a dynamic size of 7; expected a * size + b with integers a and b, or 1 / (a * size + b)
    return x * root;
  };
  const FunctionOptions options{.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu"}};
  compile_function(Net{}, scaled, options).export_onnx(temporary("root.onnx"));
}

}  // namespace tensorgrad::testing
