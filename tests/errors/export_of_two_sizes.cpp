// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_of_two_sizes, UserError) {
  const auto twice = [](const Net&, In in) { return in["x"] * 2.0; };
  const FunctionOptions options{.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu"}};
  const CompiledFunction forward = compile_function(Net{}, twice, options);
  // error: export_onnx: OnnxOptions::sizes must be at least 3 different sizes above 1, got [8,16,8]
  forward.export_onnx(temporary("sizes.onnx"), {.sizes = {8, 16, 8}});
}

}  // namespace tensorgrad::testing
