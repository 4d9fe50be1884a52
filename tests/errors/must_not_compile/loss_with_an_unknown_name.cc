// SPDX-License-Identifier: MIT
// Must not compile: the loss function uses a name that does not exist. Because its result then has
// no type, the compiler also says that it cannot be called, with a hint at the cause.
// error: 'lables' was not declared in this scope.*error inside the function too, that is the cause
#include <tensorgrad/tensorgrad.h>

int main() {
  using tensorgrad::nn::Linear;
  tensorgrad::compile(
      Linear(3, 1),
      [](const Linear& net, const tensorgrad::Inputs& in) { return mse(net(in["x"]), lables); },
      {});
}
