// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(open_size_of_a_part, ShapeError) {
  const auto twice = [](const Net&, const Inputs& in) { return in["x"] * 2.0; };
  const ForwardOptions options{.inputs = {{"x", {kOpen, 3}}}, .device = {.kind = "cpu"}};
  Forward forward = compile_forward(Net{}, twice, options);
  const std::vector<float> x(7);
  // error: input 'x': [?,3] has 3 elements or a multiple of that, got 7
  forward({{"x", x}});
}

}  // namespace tensorgrad::testing
