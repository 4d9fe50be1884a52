// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(buffer_that_tg_module_does_not_name, UserError) {
  struct Forgetful {
    nn::Linear fc{3, 2};
    Buffer count{{2}};
    TG_MODULE(fc)
  };
  compile(Forgetful{},
          [](const Forgetful& net, In) {
            // error: buffer [2] is not part of the traced model: name its field in ...
            return sum(net.count.tensor(Loc::current()));
          },
          {.optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
}

}  // namespace tensorgrad::testing
