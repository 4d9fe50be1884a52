// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

namespace {

struct Forgetful {
  nn::Linear fc{3, 2};
  Parameter scale{{2}};
  TG_MODULE(fc)
};

}  // namespace

MISTAKE(parameter_that_tg_module_does_not_name, UserError) {
  const auto loss = [](const Forgetful& net, In in) {
    const Tensor y = net.fc(in["x"]);
    // error: parameter [2] is not part of the traced model: name its field in the TG_MODULE of its
    // struct, and use the model passed to the traced function
    return mean(y * net.scale);
  };
  compile(Forgetful{}, loss,
          {.inputs = {{"x", {4, 3}}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
}

}  // namespace tensorgrad::testing
