// SPDX-License-Identifier: MIT
// A model that does not say which of its fields hold parameters. Must not compile.
// error: the model must be a struct that names its fields with TG_MODULE
#include <tensorgrad/tensorgrad.h>

struct Model {
  tensorgrad::nn::Linear layer{3, 1};
};

int main() {
  tensorgrad::compile(
      Model{},
      [](const Model& net, const tensorgrad::Inputs& in) { return sum(net.layer(in["x"])); }, {});
}
