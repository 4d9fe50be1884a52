// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_of_two_open_sizes, ShapeError) {
  const auto twice = [](const Net&, const Inputs& in) { return in["x"] * 2.0; };
  const ForwardOptions options{.inputs = {{"x", {kOpen, kOpen, 3}}}, .device = {.kind = "cpu"}};
  // error: input 'x': [?,?,3] has several open sizes; elements tell one
  compile_forward(Net{}, twice, options);
}

}  // namespace tensorgrad::testing
