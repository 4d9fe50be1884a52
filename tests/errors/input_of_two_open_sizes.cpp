// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_of_two_open_sizes, ShapeError) {
  const auto twice = [](const Net&, const Inputs& in) { return in["x"] * 2.0; };
  const FunctionOptions options{.inputs = {{"x", {kDynamic, kDynamic, 3}}},
                                .device = {.kind = "cpu"}};
  // error: input 'x': [?,?,3] has several dynamic sizes; only one can be inferred
  compile_function(Net{}, twice, options);
}

}  // namespace tensorgrad::testing
