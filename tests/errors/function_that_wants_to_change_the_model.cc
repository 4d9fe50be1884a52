// SPDX-License-Identifier: MIT
// A traced function that takes the model as one it may change. Must not compile.
// error: the function to be traced must be callable with
#include <tensorgrad/tensorgrad.h>

int main() {
  using tensorgrad::nn::Linear;
  tensorgrad::compile_function(
      Linear(3, 1), [](Linear& net, const tensorgrad::Inputs& in) { return net(in["x"]); }, {});
}
