// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(index_beside_an_ignored_one, UserError) {
  auto trainer = compiled([](const Net& net, In in) {
    // error: input 'i': element 2 is -3, which cross_entropy uses as an index in [0, 2)
    return cross_entropy(net.fc(in["x"]), in["i"], {.ignore_index = -100});
  });
  Example example;
  example.i = {-100, 1, -100, 0};
  trainer.step(example.feed);
  example.i = {-100, 1, -3, 0};
  trainer.step(example.feed);
}

}  // namespace tensorgrad::testing
