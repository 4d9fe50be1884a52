// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(open_size_of_a_part, ShapeError) {
  const auto twice = [](const Net&, const Inputs& in) { return in["x"] * 2.0; };
  const FunctionOptions options{.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu"}};
  CompiledFunction forward = compile_function(Net{}, twice, options);
  const std::vector<float> x(7);
  // error: input 'x': [?,3] takes a multiple of 3 elements, got 7
  forward({{"x", x}});
}

}  // namespace tensorgrad::testing
