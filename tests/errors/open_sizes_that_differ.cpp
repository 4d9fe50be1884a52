// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(open_sizes_that_differ, ShapeError) {
  const auto added = [](const Net&, const Inputs& in) { return in["x"] + in["y"]; };
  const FunctionOptions options{.inputs = {{"x", {kDynamic, 1}}, {"y", {kDynamic, 3}}},
                                .device = {.kind = "cpu"}};
  CompiledFunction forward = compile_function(Net{}, added, options);
  const std::vector<float> x(2), y(9);
  // error: inputs 'x' [?,1] and 'y' [?,3] have different dynamic sizes: 2 and 3
  forward({{"x", x}, {"y", y}});
}

}  // namespace tensorgrad::testing
