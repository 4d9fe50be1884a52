// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

namespace {

struct Huge {
  nn::Linear in{40000, 40000, false}, out{40000, 40000, false};
  TG_MODULE(in, out)
};

}  // namespace

MISTAKE(more_parameters_than_a_device_takes, UserError) {
  const auto loss = [](const Huge& net, In in) { return mean(net.out(net.in(in["x"]))); };
  const CompileOptions options{
      .inputs = {{"x", {1, 40000}}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}};
  // error: compile: the parameters have # elements together; a device takes at most 2^31-1, trace()
  // takes more
  compile(Huge{}, loss, options);
}

}  // namespace tensorgrad::testing
