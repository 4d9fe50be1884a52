// SPDX-License-Identifier: MIT
// Must not compile: the traced function takes the model by non-const reference.
// error: the function to be traced must be callable with
#include <tensorgrad/tensorgrad.h>

int main() {
  using tensorgrad::nn::Linear;
  tensorgrad::compile_function(
      Linear(3, 1), [](Linear& net, const tensorgrad::Inputs& in) { return net(in["x"]); }, {});
}
