// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(buffer_with_a_name_of_the_optimizer, UserError) {
  struct Inner {
    Buffer m{{2}};
    TG_MODULE(m)
  };
  struct Outer {
    nn::Linear fc{3, 2};
    Inner optim;
    TG_MODULE(fc, optim)
  };
  // error: model: the buffer name 'optim.m' is taken by another tensor of the model or the
  // optimizer
  compile(Outer{}, [](const Outer& net, In) { return sum(net.fc(zeros({1, 3}))); },
          {.optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
}

}  // namespace tensorgrad::testing
