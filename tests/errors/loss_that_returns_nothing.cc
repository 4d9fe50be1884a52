// SPDX-License-Identifier: MIT
// A loss function without a return. Must not compile.
// error: the loss function must return a tensorgrad::Tensor
#include <tensorgrad/tensorgrad.h>

int main() {
  using tensorgrad::nn::Linear;
  tensorgrad::compile(
      Linear(3, 1), [](const Linear& net, const tensorgrad::Inputs& in) { sum(net(in["x"])); }, {});
}
