// SPDX-License-Identifier: MIT
// Must not compile: the loss function returns nothing.
// error: the loss function must return a tensorgrad::Tensor
#include <tensorgrad/tensorgrad.h>

int main() {
  using tensorgrad::nn::Linear;
  tensorgrad::compile(
      Linear(3, 1), [](const Linear& net, const tensorgrad::Inputs& in) { sum(net(in["x"])); }, {});
}
