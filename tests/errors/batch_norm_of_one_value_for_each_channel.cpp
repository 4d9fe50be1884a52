// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(batch_norm_of_one_value_for_each_channel, ShapeError) {
  struct Normed {
    nn::BatchNorm1d norm{3};
    TG_MODULE(norm)
  };
  compile(Normed{},
          [](const Normed& net, In) {
            // error: batch_norm: expected more than one value per channel in training, got [1,3]
            return sum(net.norm(zeros({1, 3})));
          },
          {.optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
}

}  // namespace tensorgrad::testing
