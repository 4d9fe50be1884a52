// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_a_pool_over_the_open_size, UserError) {
  const auto pooled = [](const Net&, In in) {
    const Tensor x = in["x"];
    // error: export_onnx: avg_pool2d: 'kernel_shape' of the operator AveragePool depends on the
    // dynamic size, but must be a constant in the file
    return avg_pool2d(x, {2, x.size(3)});
  };
  const FunctionOptions options{.inputs = {{"x", {1, 2, 4, kDynamic}}}, .device = {.kind = "cpu"}};
  compile_function(Net{}, pooled, options).export_onnx(temporary("pool.onnx"));
}

}  // namespace tensorgrad::testing
