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
  // error: model: a buffer may not be named 'optim.m': another tensor of the model or of the ...
  compile(Outer{}, [](const Outer& net, In) { return sum(net.fc(zeros({1, 3}))); },
          {.optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
}

}  // namespace tensorgrad::testing
