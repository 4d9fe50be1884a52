// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

namespace {

struct Wide {
  nn::Linear fc{3, 5};
  TG_MODULE(fc)
};

}  // namespace

MISTAKE(checkpoint_of_another_model, UserError) {
  const std::string path = temporary("other.safetensors");
  Example().trainer.save(path);
  const auto loss = [](const Wide& net, In in) { return mean(net.fc(in["x"])); };
  const CompileOptions options{
      .inputs = {{"x", {4, 3}}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}};
  // error: TMP/other.safetensors: parameter 'fc.weight' is f32[5,3], got f32[2,3]
  compile(Wide{}, loss, options).load(path);
}

}  // namespace tensorgrad::testing
