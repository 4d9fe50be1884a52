// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

namespace {

struct Narrow {
  nn::Linear fc{3, 1};
  TG_MODULE(fc)
};

}  // namespace

MISTAKE(parameters_of_another_shape, UserError) {
  const auto loss = [](const Narrow& net, In in) { return mean(net.fc(in["x"])); };
  const CompileOptions options{
      .inputs = {{"x", {4, 3}}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}};
  auto trainer = compile(Narrow{}, loss, options);
  const auto params = Example().trainer.download_params();
  // error: upload_params: parameter 'fc.weight' is f32[1,3], got f32[2,3]
  trainer.upload_params(params);
}

}  // namespace tensorgrad::testing
