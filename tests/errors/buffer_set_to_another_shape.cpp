// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(buffer_set_to_another_shape, ShapeError) {
  struct Counting {
    nn::Linear fc{3, 2};
    Buffer count{{2}};
    TG_MODULE(fc, count)
  };
  compile(Counting{},
          [](const Counting& net, In) {
            // error: buffer: expected f32[2], got f32[3]
            net.count.set(zeros({3}), Loc::current());
            return sum(net.count.tensor());
          },
          {.optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
}

}  // namespace tensorgrad::testing
