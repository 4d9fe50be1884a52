// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_a_pool_over_the_open_size, UserError) {
  const auto pooled = [](const Net&, In in) {
    const Tensor x = in["x"];
    // error: export_onnx: avg_pool2d: 'kernel_shape' of the operator AveragePool depends on the
    // open size, and must be a number in the file
    return avg_pool2d(x, {2, x.size(3)});
  };
  const ForwardOptions options{.inputs = {{"x", {1, 2, 4, kOpen}}}, .device = {.kind = "cpu"}};
  compile_forward(Net{}, pooled, options).export_onnx(temporary("pool.onnx"));
}

}  // namespace tensorgrad::testing
