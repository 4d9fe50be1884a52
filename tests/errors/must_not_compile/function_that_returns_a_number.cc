// SPDX-License-Identifier: MIT
// Must not compile: the traced function does not return a tensor.
// error: the function to be traced must return a tensorgrad::Tensor, or several by name
#include <tensorgrad/tensorgrad.h>

int main() {
  using tensorgrad::nn::Linear;
  tensorgrad::compile_function(
      Linear(3, 1), [](const Linear&, const tensorgrad::Inputs& in) { return in["x"].rank(); }, {});
}
