// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(state_that_depends_on_an_open_size, UserError) {
  const auto kept = [](const Net&, const Inputs& in) {
    const Tensor last = state("last", in["x"].shape(), 0.0);
    set_state("last", in["x"]);
    return last;
  };
  const FunctionOptions options{.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu"}};
  // error: state 'last' is f32[2,3] for a dynamic size of 2, but not for one of 1; ...
  CompiledFunction forward = compile_function(Net{}, kept, options);
  const std::vector<float> x(6);
  forward({{"x", x}});
}

}  // namespace tensorgrad::testing
