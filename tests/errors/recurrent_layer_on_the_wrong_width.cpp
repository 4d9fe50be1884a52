// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(recurrent_layer_on_the_wrong_width, ShapeError) {
  struct Recurrent {
    nn::LSTM lstm{3, 4};
    TG_MODULE(lstm)
  };
  compile(Recurrent{},
          [](const Recurrent& net, In) {
            // error: recurrent layer: expected x of two or three axes, the last of size 3, got
            // [5,2,4]
            return sum(net.lstm(zeros({5, 2, 4})).output);
          },
          {.optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
}

}  // namespace tensorgrad::testing
