// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(open_sizes_that_differ, ShapeError) {
  const auto added = [](const Net&, const Inputs& in) { return in["x"] + in["y"]; };
  const ForwardOptions options{.inputs = {{"x", {kOpen, 1}}, {"y", {kOpen, 3}}},
                               .device = {.kind = "cpu"}};
  Forward forward = compile_forward(Net{}, added, options);
  const std::vector<float> x(2), y(9);
  // error: inputs 'x' [?,1] and 'y' [?,3] have open sizes that differ: 2 and 3
  forward({{"x", x}, {"y", y}});
}

}  // namespace tensorgrad::testing
