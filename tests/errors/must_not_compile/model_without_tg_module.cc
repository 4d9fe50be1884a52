// SPDX-License-Identifier: MIT
// Must not compile: the model does not name its fields with TG_MODULE.
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
