// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(state_that_depends_on_an_open_size, UserError) {
  const auto kept = [](const Net&, const Inputs& in) {
    const Tensor last = state("last", in["x"].shape(), 0.0);
    set_state("last", in["x"]);
    return last;
  };
  const ForwardOptions options{.inputs = {{"x", {kOpen, 3}}}, .device = {.kind = "cpu"}};
  // error: forward: state 'last' is f32[2,3] where the open size is 2, and not where it is 1; ...
  Forward forward = compile_forward(Net{}, kept, options);
  const std::vector<float> x(6);
  forward({{"x", x}});
}

}  // namespace tensorgrad::testing
